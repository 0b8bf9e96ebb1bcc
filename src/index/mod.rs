//! Copy-on-write B+tree over "load node / put node".
//!
//! Must not read payloads or know what keys mean.
