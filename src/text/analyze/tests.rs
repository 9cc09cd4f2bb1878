use super::Analyzer;
#[test]
fn it_runs() {
    let _ = Analyzer::from_id("terms-1/english");
}
