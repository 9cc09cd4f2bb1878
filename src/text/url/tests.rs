use super::*;

fn canonical(msg: &Msg, text: &str) -> String {
    Urls::new(msg).canonical(text).unwrap()
}

#[test]
fn v61_only_what_the_rule_names_changes() {
    let msg = Msg::default();
    for (url, expected) in [
        ("HTTPS://Example.COM/Path?utm_source=x&id=5&FBCLID=q#frag", "https://example.com/Path?id=5#frag"),
        ("http://A.com?ref=1", "http://a.com/"),
        ("http://A.com#F", "http://a.com/#F"),
        ("http://User:Pw@A.com:8080", "http://User:Pw@a.com:8080/"),
        ("http://[FE80::A]:80/X", "http://[fe80::a]:80/X"),
        ("http://a.com/a/../B%2f//c;D", "http://a.com/a/../B%2f//c;D"),
        ("http://a.com/?b=2&a=1&b=2&c", "http://a.com/?b=2&a=1&b=2&c"),
        (
            "http://a.com/?UTM_=1&a&&utm_x&Ref&gclid=1&SI=2&mc_cid&mc_eid=3&reference=4",
            "http://a.com/?a&reference=4",
        ),
        ("http://a.com/?utm=1&a?b=ref#?ref=1", "http://a.com/?utm=1&a?b=ref#?ref=1"),
        ("http://a.com/??ref=1", "http://a.com/??ref=1"),
        ("http://J\u{30C}.ÉX/É", "http://\u{1F0}.éx/É"),
    ] {
        assert_eq!(canonical(&msg, url), expected);
        assert_eq!(canonical(&msg, expected), expected, "the canonical form is its own");
    }
}

#[test]
fn v71_fragments_are_dropped_for_listed_hosts() {
    let all = Msg { drop_fragment_hosts: vec!["*".to_owned()], ..Msg::default() };
    assert_eq!(canonical(&all, "https://Spam.example/x?a=1#t=9"), "https://spam.example/x?a=1");
    let one = Msg { drop_fragment_hosts: vec!["spam.example".to_owned()], ..Msg::default() };
    assert_eq!(canonical(&one, "https://u@SPAM.example:1/x#t"), "https://u@spam.example:1/x");
    assert_eq!(canonical(&one, "https://other.example/x#t"), "https://other.example/x#t");
}

// DEDUP-29.
#[test]
fn a_host_may_list_the_parameters_that_stay() {
    let allow = BTreeMap::from([("a.com".to_owned(), vec!["v".to_owned(), "ref".to_owned()])]);
    let msg = Msg { query_allow: allow, ..Msg::default() };
    assert_eq!(canonical(&msg, "http://A.com/?x=1&v=2&V=3&ref=4&utm_a=5"), "http://a.com/?v=2&ref=4");
    assert_eq!(canonical(&msg, "http://www.a.com/?x=1&ref=4"), "http://www.a.com/?x=1");
}

#[test]
fn addresses_end_where_the_sentence_goes_on() {
    for (text, found) in [
        ("see http://a.com/x?y=1.", vec!["http://a.com/x?y=1"]),
        ("(http://a.com/x)!?' [t](https://b.com/)", vec!["http://a.com/x", "https://b.com/"]),
        ("<Http://a.com> \"http://b.com/c\"`http://d`", vec!["Http://a.com", "http://b.com/c", "http://d"]),
        ("看http://a.com/雨\u{3000}x", vec!["http://a.com/雨"]),
        ("http:// http://. http:///x http://?x http://:; https:/a ftp://a http", vec![]),
        ("http://@/ http://:80", vec!["http://@/", "http://:80"]),
        ("hhttp://a.com:", vec!["http://a.com"]),
    ] {
        assert_eq!(urls(text).map(|range| &text[range]).collect::<Vec<_>>(), found, "{text:?}");
    }
}

#[test]
fn host_and_path_without_the_rest() {
    assert_eq!(
        host_and_path("https://u1@ci2.example:80/job/77/x9?a=1#2").as_deref(),
        Some("ci#.example/job/#/x#")
    );
    assert_eq!(host_and_path("mailto:a"), None);
}
