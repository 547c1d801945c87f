//! Settings that are lists: `["a", "b"]`, or one string of values with commas between, which is what
//! people write into the environment.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::StringDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// Reads a list of either form. Spaces around commas and empty values are dropped.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(List(PhantomData))
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or values with commas between")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        text.split(',')
            .map(str::trim)
            .filter(|value| !value.is_empty())
            .map(|value| T::deserialize(StringDeserializer::<E>::new(value.to_owned())))
            .collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(list)
    }
}
