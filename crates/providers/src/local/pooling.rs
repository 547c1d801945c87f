//! From a model's numbers to one vector for each text, as the files of sentence-transformers say.

use std::path::Path;

use serde_json::Value;

/// How the vectors of tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The first one.
    First,
}

/// How a model's output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) pooling: Pooling,
    /// Whether vectors get the length 1.
    pub(super) normalize: bool,
    pub(super) max_tokens: Option<usize>,
}

impl Recipe {
    /// From `modules.json`, `1_Pooling/config.json` and `sentence_bert_config.json`, each of which may be
    /// missing: then the mean, with the length 1.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let modules = json(&directory.join("modules.json"))?;
        let pooling = json(&directory.join("1_Pooling").join("config.json"))?;
        let bert = json(&directory.join("sentence_bert_config.json"))?;
        let flag = |name: &str| {
            let flag = pooling.as_ref().and_then(|pooling| pooling.get(name)?.as_bool());
            flag.unwrap_or_default()
        };
        if flag("pooling_mode_max_tokens") || flag("pooling_mode_weightedmean_tokens") || flag("pooling_mode_lasttoken")
        {
            return Err("1_Pooling/config.json asks for a pooling that is neither the mean nor the first token".into());
        }
        let normalizes = |modules: &Value| {
            let modules = modules.as_array().map(Vec::as_slice).unwrap_or_default();
            let kinds = modules.iter().filter_map(|module| module.get("type")?.as_str());
            kinds.into_iter().any(|kind| kind.ends_with(".Normalize"))
        };
        let most = bert.as_ref().and_then(|bert| bert.get("max_seq_length")?.as_u64());
        Ok(Self {
            pooling: if flag("pooling_mode_cls_token") {
                Pooling::First
            } else {
                Pooling::Mean
            },
            normalize: modules.as_ref().is_none_or(normalizes),
            max_tokens: most.and_then(|most| usize::try_from(most).ok()),
        })
    }

    /// `numbers` are texts by dimensions, or texts by tokens by dimensions; `mask` tells which tokens of a
    /// row of `longest` are some.
    pub(super) fn vectors(
        self,
        shape: &[i64],
        numbers: &[f32],
        mask: &[i64],
        longest: usize,
    ) -> Result<Vec<Vec<f32>>, String> {
        let sizes: Vec<usize> = shape
            .iter()
            .map(|size| usize::try_from(*size).unwrap_or_default())
            .collect();
        let mut vectors: Vec<Vec<f32>> = match *sizes.as_slice() {
            [_, dims] if dims > 0 => numbers.chunks_exact(dims).map(<[f32]>::to_vec).collect(),
            [_, tokens, dims] if dims > 0 && tokens == longest => {
                let rows = numbers.chunks_exact(tokens * dims).zip(mask.chunks_exact(longest));
                rows.map(|(row, mask)| self.pool(row, mask, dims)).collect()
            }
            _ => return Err(format!("it gives numbers of shape {sizes:?}")),
        };
        if self.normalize {
            for vector in &mut vectors {
                let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
                vector.iter_mut().for_each(|number| *number /= length.max(1e-12));
            }
        }
        Ok(vectors)
    }

    fn pool(self, row: &[f32], mask: &[i64], dims: usize) -> Vec<f32> {
        let mut sum = vec![0.0_f32; dims];
        let mut count = 0_u16;
        for (token, _) in row.chunks_exact(dims).zip(mask).filter(|(_, mask)| **mask != 0) {
            for (sum, number) in sum.iter_mut().zip(token) {
                *sum += number;
            }
            count = count.saturating_add(1);
            if self.pooling == Pooling::First {
                break;
            }
        }
        let count = f32::from(count.max(1));
        sum.iter_mut().for_each(|number| *number /= count);
        sum
    }
}

/// A small file of JSON, if it is there.
fn json(path: &Path) -> Result<Option<Value>, String> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
