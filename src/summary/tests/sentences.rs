use crate::summary::sentences::{sentences, speaker};

#[test]
fn a_sentence_keeps_its_numbers_dates_names_and_denials() {
    for text in [
        "It costs 3.50 on 7 May 2023 at 2 p.m. in St. Gallen.",
        "Dr. J. Smith did not come.",
        "Version 1.2.3 of main.rs isn't out, e.g. for v. 2.",
        "am 3. März um 5 Uhr",
        "See https://example.org/a?b=1.c",
        "“Really?” she said.",
    ] {
        assert_eq!(sentences(text), [text]);
    }
}

#[test]
fn sentences_end_where_they_end() {
    let three = "I moved in 2021. Was it good?! Yes... \"It was.\" Bye";
    assert_eq!(sentences(three), ["I moved in 2021.", "Was it good?!", "Yes...", "\"It was.\"", "Bye"]);
    assert_eq!(sentences(" a\r\n\n b \n"), ["a", "b"]);
    assert_eq!(sentences("猫が好き。犬も好き。"), ["猫が好き。", "犬も好き。"]);
    assert!(sentences(" \n ").is_empty() && sentences("").is_empty());
}

#[test]
fn a_speaker_stands_before_a_colon() {
    assert_eq!(speaker("Ann: hi"), (Some("Ann"), "hi"));
    assert_eq!(speaker("Ann Lee: so: yes"), (Some("Ann Lee"), "so: yes"));
    assert_eq!(speaker("The point is: yes"), (None, "The point is: yes"));
    assert_eq!(speaker("12:30: lunch"), (None, "12:30: lunch"));
}
