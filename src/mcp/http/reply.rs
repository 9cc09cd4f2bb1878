//! What a request is answered with that never reaches a session.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

/// A response, whoever made it.
pub(super) type Reply = Response<BoxBody<Bytes, Infallible>>;

/// A response with this body, after which the connection ends: the rest of the request is not read.
pub(super) fn refused(status: StatusCode, answer: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(answer)).boxed());
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    reply
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::default().boxed());
    *reply.status_mut() = status;
    reply
}
