//! Members of a codec's `configuration`.
//!
//! Holds [`Config`], which reads them with their types and refuses those nobody asked for. Must not know any codec.

use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::json::Json;

/// The configuration of one codec, as its parser reads it.
#[derive(Debug)]
pub(crate) struct Config<'a> {
    spec: &'a CodecSpec,
    /// Names asked for so far; the rest is unknown.
    asked: Vec<&'static str>,
}

impl<'a> Config<'a> {
    pub(crate) fn new(spec: &'a CodecSpec) -> Self {
        Self {
            spec,
            asked: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.spec.name
    }

    /// An integer within `range`, if the member is there and not null.
    pub(crate) fn int(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>> {
        match self.member(key) {
            None => Ok(None),
            Some(Json::I64(v)) if range.contains(v) => Ok(Some(*v)),
            Some(other) => Err(self.wrong(
                key,
                format_args!("an integer {}..={}", range.start(), range.end()),
                other,
            )),
        }
    }

    pub(crate) fn bool(&mut self, key: &'static str) -> Result<Option<bool>> {
        match self.member(key) {
            None => Ok(None),
            Some(Json::Bool(v)) => Ok(Some(*v)),
            Some(other) => Err(self.wrong(key, format_args!("true or false"), other)),
        }
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<&'a str>> {
        match self.member(key) {
            None => Ok(None),
            Some(Json::String(v)) => Ok(Some(v)),
            Some(other) => Err(self.wrong(key, format_args!("a text"), other)),
        }
    }

    pub(crate) fn list(&mut self, key: &'static str) -> Result<Option<&'a [Json]>> {
        match self.member(key) {
            None => Ok(None),
            Some(Json::Array(v)) => Ok(Some(v)),
            Some(other) => Err(self.wrong(key, format_args!("a list"), other)),
        }
    }

    /// Refuses members that the codec's parser did not ask for: one of them may change what the bytes mean.
    pub(crate) fn finish(self) -> Result<()> {
        let known = |key: &str| self.asked.contains(&key);
        match self.spec.configuration.iter().find(|(key, _)| !known(key)) {
            None => Ok(()),
            Some((key, _)) => Err(Error::unsupported(format!(
                "member `{key}` in the configuration of codec {}",
                self.spec.name
            ))
            .reason("codec_configuration")),
        }
    }

    /// An error about this codec's configuration as a whole.
    pub(crate) fn fault(&self) -> Error {
        Error::invalid(format!("configuration of codec {}", self.spec.name))
            .reason("codec_configuration")
    }

    fn member(&mut self, key: &'static str) -> Option<&'a Json> {
        self.asked.push(key);
        let found = self.spec.configuration.iter().find(|(k, _)| k == key);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != Json::Null)
    }

    fn wrong(&self, key: &str, expected: std::fmt::Arguments<'_>, found: &Json) -> Error {
        self.fault()
            .expected(format_args!("{expected} as `{key}`"))
            .found(match found {
                Json::I64(v) => v.to_string(),
                Json::U64(v) => v.to_string(),
                Json::F64(v) => v.to_string(),
                Json::Bool(v) => v.to_string(),
                Json::String(v) => format!("\"{v}\""),
                Json::Null => "null".to_owned(),
                Json::Array(_) => "a list".to_owned(),
                Json::Object(_) => "an object".to_owned(),
            })
    }
}
