use super::is_loopback;

#[test]
fn servers_of_this_machine_are_asked_without_a_proxy() {
    for here in
        ["http://localhost:11434/v1", "http://127.0.0.1/v1", "http://[::1]:8080/v1", "https://localhost"]
    {
        assert!(is_loopback(here), "{here}");
    }
    for there in ["https://api.openai.com/v1", "http://localhost.example.org/v1", "http://10.0.0.1:80"] {
        assert!(!is_loopback(there), "{there}");
    }
}
