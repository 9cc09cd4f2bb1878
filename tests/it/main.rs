//! The tests of the whole: one program, a module for what each tests. `cargo test --test it damage::` runs one module.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test may panic, and says when it skips"
)]

mod access;
mod aged;
mod allocations;
mod announced;
mod api;
mod backup;
#[cfg(feature = "faults")]
mod beside;
mod bitrot;
mod bounds;
mod by_id;
mod bytes;
mod cap;
#[cfg(feature = "cli")]
mod cli;
mod cluster;
mod cluster_looks;
mod compat;
mod confidence;
mod contexts;
mod copies;
#[cfg(feature = "faults")]
mod crash;
mod damage;
#[cfg(feature = "faults")]
mod disk;
mod embedders;
mod embedding;
mod ended;
mod erasure;
mod exchange;
mod expiry;
mod forgetting;
mod fsck;
mod gc_forgotten;
mod gc_groups;
mod gc_guard;
mod gc_model;
mod gc_queries;
#[cfg(feature = "faults")]
mod gc_report;
#[cfg(feature = "faults")]
mod gc_runs;
mod gc_undone;
mod goals;
mod graph;
mod growth;
mod growth_exchange;
mod growth_gc;
mod growth_graph;
mod growth_messages;
mod growth_namespaces;
mod growth_writers;
mod habit;
mod holders;
mod index;
mod indexes;
mod inverses;
mod keys_ahead;
#[cfg(all(unix, feature = "cli"))]
mod kill;
#[cfg(all(unix, feature = "cli"))]
mod kill_passes;
mod life;
mod maintain;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp-http")]
mod mcp_http;
mod meanwhile;
mod message_keys;
mod model;
#[cfg(all(feature = "faults", unix))]
mod openers;
mod orphans;
mod past;
mod past_plans;
mod payload;
mod plans_undone;
mod promises;
mod prune;
mod quality;
mod ranking;
#[cfg(feature = "mcp-http")]
mod raw_http;
mod readme;
mod recall;
mod regress;
mod renamespace;
mod replayed;
mod restored;
mod retention;
mod returns;
mod roundtrip;
mod runs;
#[cfg(all(unix, feature = "faults"))]
mod seam;
mod shared_ahead;
mod spec_dedup;
mod spec_gc;
mod spec_lifecycle;
mod spec_messages;
mod spec_model;
mod spec_rules;
mod spec_tools;
mod spec_vector_dedup;
mod stories;
mod sweeper;
mod tagged;
mod text;
mod tiers;
#[cfg(feature = "tokio")]
mod tokio;
mod travel;
mod undo_random;
mod undone;
mod undone_alone;
mod united;
mod verbatim;
mod verbs;
mod versions;
mod visible;
#[cfg_attr(
    not(all(unix, feature = "faults")),
    allow(dead_code, reason = "modules that are left out use the rest")
)]
mod world;
