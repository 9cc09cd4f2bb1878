use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::Analyzer;
use super::Clause;
use super::TextQuery;
use super::Walk;
use super::ascii_words;
use super::words_of;
use crate::limits::QUERY_CLAUSES_MAX;
use crate::limits::TERM_BYTES_MAX;
use crate::policy::Stemming;

fn analyzer(stemming: &str) -> Analyzer {
    Analyzer::new(stemming.parse().unwrap())
}

fn terms_of(stemming: &str, text: &str) -> Vec<(String, u32)> {
    let mut terms = Vec::new();
    analyzer(stemming).analyze(text, &mut |term, position| terms.push((term.to_owned(), position)));
    terms
}

/// `term@position` of each term, with English stems.
fn english(text: &str) -> String {
    shown("english", text)
}

fn shown(stemming: &str, text: &str) -> String {
    let terms = terms_of(stemming, text).into_iter().map(|(term, position)| format!("{term}@{position}"));
    terms.collect::<Vec<_>>().join(" ")
}

#[test]
fn ids_name_rules_and_stemming_and_are_read_back() {
    assert_eq!(analyzer("english").id(), "terms-1/english");
    assert_eq!(Analyzer::new(Stemming::default()), analyzer("english"));
    assert_eq!(Stemming::ALL.len(), 19);
    for name in Stemming::ALL.iter().map(|language| language.as_str()) {
        let made = analyzer(name);
        assert_eq!(made.stemming.as_str(), name);
        assert_eq!(Analyzer::from_id(&made.id()), Some(made));
    }
    for id in
        ["", "terms-1", "terms-1/", "terms-1/English", "terms-2/english", "terms-1/klingon", "terms-1/none/"]
    {
        assert_eq!(Analyzer::from_id(id), None, "{id}");
    }
}

#[test]
fn a_plain_word_is_one_term_with_its_stem() {
    assert_eq!(english("The cats were running, happily!"), "the@0 cat@1 were@2 run@3 happili@4");
    assert_eq!(shown("none", "The cats were running"), "the@0 cats@1 were@2 running@3");
    assert_eq!(shown("german", "Häuser laufen"), "haus@0 lauf@1");
    assert_eq!(english(" \t\r\n ... -- !? "), "");
    assert_eq!(english("NASA (USA)"), "nasa@0 usa@1");
}

#[test]
fn accents_and_letters_of_neighbours_are_folded() {
    assert_eq!(shown("none", "Straße STRASSE Æsir ÆSIR søren Łódź đak œuvre ırmak"), {
        "strasse@0 strasse@1 aesir@2 aesir@3 soren@4 lodz@5 dak@6 oeuvre@7 irmak@8"
    });
    assert_eq!(shown("none", "café cafe\u{301} CAFÉ İstanbul ＡＢＣ ﬁne"), {
        "cafe@0 cafe@1 cafe@2 istanbul@3 abc@4 fine@5"
    });
    assert_eq!(shown("none", "ΟΔΟΣ οδός"), "οδοσ@0 οδοσ@1");
    assert_eq!(shown("none", "data\u{AD}base zero\u{200D}width"), "database@0 zerowidth@1");
    // English folds before it stems, French after.
    assert_eq!(english("résumés resumes"), "resum@0 resum@1");
    assert_eq!(shown("french", "mangés mangées l'été d’accord"), "mang@0 mang@1 l@2 ete@3 d@4 accord@5");
}

#[test]
fn apostrophes_belong_to_words_and_possessives_go() {
    assert_eq!(english("Caroline's CAROLINE’S caroline James'"), "carolin@0 carolin@1 carolin@2 jame@3");
    assert_eq!(shown("none", "don't don’t dont"), "dont@0 dont@1 dont@2");
    assert_eq!(shown("none", "O'Brien rock'n'roll 'quoted'"), "obrien@0 rocknroll@1 quoted@2");
    assert_eq!(shown("none", "5's a'1"), "5@0 s@1 a@2 1@3");
}

#[test]
fn names_are_kept_whole_and_in_parts_at_following_positions() {
    assert_eq!(shown("none", "getUserName"), "getusername@0 get@0 user@1 name@2");
    assert_eq!(shown("none", "HTTPServer2"), "httpserver2@0 http@0 server@1 2@2");
    assert_eq!(shown("none", "PDFs IDs NASAs"), "pdfs@0 ids@1 nasas@2");
    assert_eq!(shown("none", "mp3 1st"), "mp3@0 mp@0 3@1 1st@1 1@1 st@2");
    // Whole as a lowercase word would be.
    assert_eq!(english("getUserNames"), "getusernam@0 get@0 user@1 name@2");
    assert_eq!(english("getusernames"), "getusernam@0");
    // What stands behind a name stands behind it however it is written.
    assert_eq!(shown("none", "GitHub now"), "github@0 git@0 hub@1 now@1");
    assert_eq!(shown("none", "github now"), "github@0 now@1");
    // A hash is no name.
    assert_eq!(shown("none", "da39a3ee5e6b4b0d"), "da39a3ee5e6b4b0d@0");
    assert_eq!(shown("none", "aBcDeFgH"), "abcdefgh@0 a@0 bc@1 de@2 fg@3 h@4");
    assert_eq!(shown("none", "a1b2c3d4"), "a1b2c3d4@0 a@0 1@1 b@2 2@3 c@4 3@5 d@6 4@7");
    assert_eq!(shown("none", "a1b2c3d4e"), "a1b2c3d4e@0");
}

#[test]
fn joined_words_are_kept_as_a_compound_too() {
    assert_eq!(shown("none", "gt-42a"), "gt-42a@0 gt@0 42a@1 42@1 a@2");
    assert_eq!(shown("none", "(user_id),"), "user_id@0 user@0 id@1");
    assert_eq!(shown("none", "src/main.rs"), "src/main.rs@0 src@0 main@1 rs@2");
    assert_eq!(shown("none", "v1.2.3"), "v1.2.3@0 v1@0 v@0 1@1 2@1 3@2");
    assert_eq!(shown("none", "std::io __init__ C:\\tmp"), { "std::io@0 std@0 io@1 init@2 c@3 tmp@4" });
    assert_eq!(shown("none", "Ann.Lee@example.com!"), "ann.lee@example.com@0 ann@0 lee@1 example@2 com@3");
    assert_eq!(shown("none", "https://example.com/a?b=c"), {
        "https://example.com/a@0 https@0 example@1 com@2 a@3 b@4 c@5"
    });
    assert_eq!(english("state-of-the-art's"), "state-of-the-art@0 state@0 of@1 the@2 art@3");
    assert_eq!(shown("none", "gpt\u{2011}4 gpt-4"), "gpt-4@0 gpt@0 4@1 gpt-4@2 gpt@2 4@3");
    assert_eq!(shown("none", "foo..bar one--two a,b a|b"), "foo@0 bar@1 one@2 two@3 a@4 b@5 a@6 b@7");
}

#[test]
fn numbers_are_compounds_of_their_groups() {
    assert_eq!(shown("none", "3.14 3,14"), "3.14@0 3@0 14@1 3@2 14@3");
    assert_eq!(shown("none", "1,000 1,234,567.5"), "1000@0 1@0 000@1 1234567.5@2 1@2 234@3 567@4 5@5");
    assert_eq!(shown("none", "2026-11-22 12:30 ٤٢"), "2026-11-22@0 2026@0 11@1 22@2 12:30@3 12@3 30@4 42@5");
}

#[test]
fn scripts_without_spaces_give_bigrams() {
    assert_eq!(english("今日は雨です"), "今日@0 日は@1 は雨@2 雨で@3 です@4");
    assert_eq!(english("雨"), "雨@0");
    assert_eq!(english("한국어 x"), "한국@0 국어@1 x@2");
    assert_eq!(english("東京Tower2026年"), "東京@0 tower2026@1 tower@1 2026@2 年@2");
    assert_eq!(english("ｶﾞｷﾞ。データ・ベース"), "ガギ@0 デー@1 ータ@2 ベー@3 ース@4");
    // Marks stay with their letter.
    assert_eq!(english("สวัสดี"), "สวั@0 วัส@1 สดี@2");
    assert_eq!(english("ລາວ ភាសា"), "ລາ@0 າວ@1 ភាសា@2");
    assert_eq!(english("မြန်မာ"), "မြန်@0 န်မာ@1");
}

#[test]
fn other_scripts_are_words() {
    assert_eq!(english("שָׁלוֹם עולם"), "שלום@0 עולם@1");
    assert_eq!(english("צה\"ל צה״ל"), "צהל@0 צהל@1");
    assert_eq!(english("مُحَمَّد أحمد كتـــاب"), "محمد@0 احمد@1 كتاب@2");
    // Vowel signs of Devanagari are no accents.
    assert_eq!(english("हिन्दी भाषा"), "हिन्दी@0 भाषा@1");
    assert_eq!(shown("none", "Привет, Мир"), "привет@0 мир@1");
    assert_eq!(shown("russian", "книги книгами"), "книг@0 книг@1");
}

#[test]
fn emoji_are_terms() {
    assert_eq!(english("ok👍🏽 😂😂 ❤️ ❤ 🇩🇪"), "ok@0 👍🏽@1 😂@2 😂@3 ❤@4 ❤@5 🇩🇪@6");
    assert_eq!(english("→ © § ½"), "1@0 2@1");
}

#[test]
fn a_term_is_cut_at_the_end_of_a_character() {
    let long = terms_of("none", &"ж".repeat(100));
    assert_eq!(long, [("ж".repeat(32), 0)]);
    let odd = terms_of("none", &format!("a{}", "ж".repeat(100)));
    assert_eq!(odd, [(format!("a{}", "ж".repeat(31)), 0)]);
    assert_eq!(terms_of("english", &"a".repeat(1 << 20)).len(), 1);
}

fn query(text: &str) -> TextQuery {
    analyzer("english").parse_query(text)
}

/// Each clause as it would be written, with its count.
fn clauses(text: &str) -> String {
    let shown = query(text).clauses.into_iter().map(|(clause, count)| match clause {
        Clause::Term { term } => format!("{term}×{count}"),
        Clause::Prefix { prefix, word: None } => format!("{prefix}*×{count}"),
        Clause::Prefix { prefix, word: Some(word) } => format!("{prefix}*|{word}×{count}"),
        Clause::Phrase { terms } => {
            let terms: Vec<_> = terms.into_iter().map(|(term, at)| format!("{term}@{at}")).collect();
            format!("\"{}\"×{count}", terms.join(" "))
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn loose_words_are_terms_with_counts() {
    assert_eq!(clauses("the cat and the cats"), "the×2 cat×2 and×1");
    assert_eq!(clauses("user_id"), "user_id×1 user×1 id×1");
    assert_eq!(clauses(" ... "), "");
}

#[test]
fn a_star_behind_two_characters_makes_a_prefix() {
    assert_eq!(clauses("Runn* café* x"), "runn*×1 cafe*×1 x×1");
    assert_eq!(clauses("(foo*), foo*"), "foo*×2");
    assert_eq!(clauses("src/ma* a,bc*"), "src/ma*×1 a×1 bc*×1");
    // The word itself is found as well, whatever its stem.
    assert_eq!(clauses("memory* (houses*) getUser*"), "memory*|memori×1 houses*|hous×1 getuser*×1");
    // Too short, in the middle, emphasis of Markdown, bigrams.
    assert_eq!(clauses("a* 2*3 *very* **bold** 東京*"), "a×1 2×1 3×1 veri×1 bold×1 東京×1");
}

#[test]
fn one_character_without_spaces_asks_for_the_pairs_that_it_begins() {
    assert_eq!(clauses("猫"), "猫*×1");
    assert_eq!(clauses("\"猫\" ก่"), "猫*×1 ก่*×1");
    assert_eq!(clauses("iPhone和 猫犬"), "iphon×1 i×1 phone×1 和*×1 猫犬×1");
}

#[test]
fn quotes_make_phrases() {
    assert_eq!(clauses("\"GitHub actions\""), "\"github@0 action@1\"×1");
    assert_eq!(clauses("“user_id field” „über alles“ «bon mot»"), {
        "\"user@0 id@1 field@2\"×1 \"uber@0 all@1\"×1 \"bon@0 mot@1\"×1"
    });
    assert_eq!(clauses("\"red car\" fast"), "\"red@0 car@1\"×1 red×1 car×1 fast×1");
    assert_eq!(clauses("\"red\""), "red×1");
    assert_eq!(clauses("\"red\" red"), "red×2");
    assert_eq!(clauses("\"red car"), "red×1 car×1");
    assert_eq!(clauses("a 5\" and 10\" board"), "a×1 5×1 and×1 10×1 board×1");
    assert_eq!(clauses("צה\"ל בצה\"ל"), "צהל×1 בצהל×1");
    assert_eq!(clauses("\"\" \" \""), "");
    assert_eq!(clauses("\"ice\" \"red wine\""), "ice×1 \"red@0 wine@1\"×1");
}

#[test]
fn a_long_query_is_cut() {
    let many: Vec<String> = (0..QUERY_CLAUSES_MAX + 1).map(|n| format!("{n}")).collect();
    let kept = query(&many.join(" "));
    assert_eq!((kept.clauses.len(), kept.cut), (QUERY_CLAUSES_MAX, true));
    assert_eq!(kept.clauses.first(), Some(&(Clause::Term { term: "0".to_owned() }, 1)));
    let fits = many.iter().skip(1).chain(many.last()).cloned().collect::<Vec<_>>().join(" ");
    assert!(!query(&fits).cut);
    let phrase = query(&format!("\"{}\"", many.join(" ")));
    let [(Clause::Phrase { terms }, 1)] = phrase.clauses.as_slice() else { panic!("{phrase:?}") };
    assert_eq!((terms.len(), phrase.cut), (QUERY_CLAUSES_MAX, true));
}

/// Quadratic work would take hours: this test would not end.
#[test]
fn work_is_linear_in_the_text() {
    const BYTES: usize = 1 << 20;
    let nasty = [
        "a-",
        "a.",
        "a'",
        "'",
        "1,000,",
        "aB",
        "a1",
        "\"",
        "\u{301}",
        "a\u{301}",
        "a.\u{301}",
        "\u{200D}",
        "👩\u{200D}",
        "🇩",
        "今",
        "ก\u{E31}",
        "\u{FDFA}",
        "a*",
        "* ",
        "„",
        "\" a",
        "é",
        "x:\u{AD}",
        "\u{5D0}\"",
        "::",
        "A\u{200B}",
    ];
    for piece in nasty {
        let text = piece.repeat(BYTES / piece.len());
        let mut count = 0;
        analyzer("english").analyze(&text, &mut |_, _| count += 1);
        let query = query(text.get(..1 << 16).unwrap_or(&text));
        assert!(query.clauses.len() <= QUERY_CLAUSES_MAX);
        // A word and the parts of a word end at different bytes.
        assert!(count <= 2 * BYTES, "{piece:?}: {count} terms");
    }
}

#[test]
fn a_text_may_be_read_while_another_is() {
    let mut inner = Vec::new();
    analyzer("english").analyze("cats", &mut |_, _| inner = terms_of("german", "cats"));
    assert_eq!(inner, terms_of("german", "cats"));
    assert_eq!(english("cats cats"), "cat@0 cat@1");
}

fn nasty_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z]{1,9}",
        4 => "[ \\-_./:@+\\\\,'’\"*0-9]{1,3}",
        1 => "\\PC{1,4}",
        1 => "[\u{300}-\u{303}\u{AD}\u{200D}\u{FE0F}ßİΣςœ今ガ한กั👍🏽🇩]{1,4}",
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_has_bounded_terms_at_positions_that_never_go_back(text in nasty_text(), other in any::<String>()) {
        for name in Stemming::ALL.iter().map(|language| language.as_str()) {
            for text in [&text, &other] {
                let mut last = 0;
                for (term, position) in terms_of(name, text) {
                    prop_assert!((1..=TERM_BYTES_MAX).contains(&term.len()), "{term:?}");
                    prop_assert!(position >= last);
                    last = position;
                }
                analyzer(name).parse_query(text);
            }
        }
    }

    #[test]
    fn every_stemmer_takes_words_of_every_script(
        word in "[\\p{Arabic}]{1,12}|[\\p{Tamil}]{1,12}|[\\p{Greek}]{1,12}|[а-яё]{1,12}|[a-zçğıöşüâîû]{1,16}|[a-zäöåøæßéèêñõőű']{1,40}",
    ) {
        for name in Stemming::ALL.iter().map(|language| language.as_str()) {
            terms_of(name, &word);
        }
    }

    #[test]
    fn words_of_ascii_are_those_of_unicode(text in "[a-cA-C0-1 '\"._:,;/@-]{0,24}", elides in any::<bool>()) {
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        ascii_words(&text, elides, &mut |word| fast.push(word));
        for (at, piece) in text.split_word_bound_indices().filter(|(_, piece)| piece.contains(char::is_alphanumeric)) {
            words_of(piece, elides, &mut |word| slow.push(at + word.start..at + word.end));
        }
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn the_short_way_of_plain_words_gives_what_the_long_way_gives(
        text in "([.,(\"'*-]{0,2}[a-eA-CsS']{1,18}[.,)\"'_0-]{0,2} ?){0,5}",
        name in proptest::sample::select(Stemming::ALL.iter().map(|language| language.as_str()).collect::<Vec<_>>()),
    ) {
        let mut long = Vec::new();
        let mut take = |term: &str, position, _| long.push((term.to_owned(), position));
        let mut walk = Walk::new(name.parse().unwrap(), &mut take);
        text.split_whitespace().for_each(|chunk| walk.chunk(chunk));
        walk.finish();
        drop(walk);
        prop_assert_eq!(terms_of(name, &text), long);
    }

    #[test]
    fn a_lowered_text_has_the_terms_of_a_text_lowered_twice(text in nasty_text()) {
        let once = crate::text::words::lowered(&text);
        let twice = crate::text::words::lowered(&once);
        prop_assert_eq!(terms_of("english", &once), terms_of("english", &twice));
    }

    #[test]
    fn the_term_of_a_term_is_itself(text in "[\\p{Latin}\\p{Greek}\\p{Cyrillic}\\p{Hebrew}0-9 '_./-]{0,20}") {
        for (term, _) in terms_of("none", &text) {
            let again = terms_of("none", &term);
            prop_assert_eq!(again.first().map(|(term, _)| term), Some(&term), "{}", text);
        }
    }

    #[test]
    fn a_query_without_signs_asks_for_the_terms_of_its_text(text in "[a-zA-Z0-9é今_./ -]{0,60}") {
        let asked: Vec<String> = query(&text).clauses.into_iter().flat_map(|(clause, count)| match clause {
            Clause::Term { term } => vec![term; count as usize],
            Clause::Prefix { prefix, .. } if prefix == "今" => vec![prefix; count as usize],
            other => panic!("{other:?}"),
        }).collect();
        let mut terms: Vec<String> = terms_of("english", &text).into_iter().map(|(term, _)| term).collect();
        let mut asked_sorted = asked;
        asked_sorted.sort();
        terms.sort();
        prop_assert_eq!(asked_sorted, terms);
    }
}
