mod extract;
mod form;
mod sentences;
