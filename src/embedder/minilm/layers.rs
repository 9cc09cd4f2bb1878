//! The forward pass of BERT (Devlin et al., 2018) for one text, and the step that makes one vector from it.

use super::folder::{CONFIG, Config};
use super::precision::Precision;
use super::weights::{Dense, Matrix, Weights};
use crate::error::{Error, Result};
use crate::limits::DIM_MAX;
use crate::vector::dot_f32_many;

/// The largest number of layers of a model.
const LAYERS_MAX: usize = 48;

const WORDS: &str = "embeddings.word_embeddings.weight";
const PLACES: &str = "embeddings.position_embeddings.weight";
const TYPES: &str = "embeddings.token_type_embeddings.weight";

/// A model with its weights and sizes.
#[derive(Debug)]
pub(super) struct Bert {
    hidden: usize,
    heads: usize,
    vocabulary: usize,
    words: Matrix,
    /// For each position of a text its embedding, plus the embedding of the first sort of text, to which all
    /// texts belong.
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// The queries, keys and values of all heads, side by side.
    looks: Dense,
    attended: Dense,
    attended_norm: Norm,
    inner: Dense,
    outer: Dense,
    norm: Norm,
}

#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    eps: f32,
}

impl Bert {
    pub(super) fn read(weights: &Weights<'_>, config: &Config, precision: Precision) -> Result<Self> {
        let ((vocabulary, hidden), (places, _)) = (weights.shape(WORDS)?, weights.shape(PLACES)?);
        let (types, _) = weights.shape(TYPES)?;
        let heads = config.num_attention_heads;
        within(WORDS, "columns", hidden, 1, DIM_MAX)?;
        within(PLACES, "rows", places, 3, usize::MAX)?;
        within(TYPES, "rows", types, 1, usize::MAX)?;
        if heads == 0 || !hidden.is_multiple_of(heads) {
            let why = format!("`num_attention_heads` must divide the {hidden} dimensions");
            return Err(Error::invalid(CONFIG, why, heads));
        }
        let eps = config.layer_norm_eps;
        if !(eps.is_finite() && eps >= 0.0) {
            return Err(Error::invalid(CONFIG, "`layer_norm_eps` must be finite and not negative", eps));
        }
        let named = |layer| format!("encoder.layer.{layer}");
        let holds = |layer: &usize| weights.has(&format!("{}.output.dense.weight", named(*layer)));
        let count = (0..=LAYERS_MAX).take_while(holds).count();
        within(WORDS, "layers", count, 1, LAYERS_MAX)?;
        if config.num_hidden_layers.is_some_and(|said| said != count) {
            let why = format!("`num_hidden_layers` must be that of the weights, {count}");
            return Err(Error::invalid(CONFIG, why, config.num_hidden_layers.unwrap_or(0)));
        }
        let mut summed = weights.values(PLACES, &[places, hidden])?;
        let types = weights.values(TYPES, &[types, hidden])?;
        for place in summed.chunks_exact_mut(hidden) {
            place.iter_mut().zip(&types).for_each(|(sum, value)| *sum += value);
        }
        Ok(Self {
            hidden,
            heads,
            vocabulary,
            words: Matrix::new(weights.values(WORDS, &[vocabulary, hidden])?, hidden, precision),
            places: summed,
            norm: Norm::read(weights, "embeddings.LayerNorm", hidden, eps)?,
            layers: (0..count)
                .map(|layer| Layer::read(weights, &named(layer), hidden, eps, precision))
                .collect::<Result<_>>()?,
        })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.hidden
    }

    /// The number of tokens that have an embedding.
    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The largest number of tokens of a text.
    pub(super) fn places(&self) -> usize {
        self.places.len() / self.hidden
    }

    /// The mean over the output of the last layer for these tokens, at unit length. `None` if the mean is not finite,
    /// or zero.
    pub(super) fn vector(&self, tokens: &[u32]) -> Option<Vec<f32>> {
        debug_assert!(tokens.len() <= self.places(), "a text has as many tokens as places");
        let mut states: Vec<f32> = self.places.iter().copied().take(tokens.len() * self.hidden).collect();
        for (token, state) in tokens.iter().zip(states.chunks_exact_mut(self.hidden)) {
            self.words.add_row(*token as usize, state);
            self.norm.apply(state);
        }
        let mut room = Room::default();
        for layer in &self.layers {
            layer.apply(&mut states, self.heads, &mut room);
        }
        let mut sums = vec![0.0_f64; self.hidden];
        for state in states.chunks_exact(self.hidden) {
            sums.iter_mut().zip(state).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
        (length.is_finite() && length > 0.0).then(|| sums.iter().map(|sum| (sum / length) as f32).collect())
    }
}

fn within(name: &str, what: &str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let why = match most {
        usize::MAX => format!("must have at least {least} {what}"),
        _ => format!("must have {least} to {most} {what}"),
    };
    Err(Error::invalid(name, why, value))
}

/// Buffers that every layer fills again.
#[derive(Default)]
struct Room {
    looks: Vec<f32>,
    context: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    shares: Vec<f32>,
    added: Vec<f32>,
    inner: Vec<f32>,
}

impl Layer {
    fn read(
        weights: &Weights<'_>,
        name: &str,
        hidden: usize,
        eps: f32,
        precision: Precision,
    ) -> Result<Self> {
        let within_layer = |part: &str| format!("{name}.{part}");
        let inner_name = within_layer("intermediate.dense");
        let (inner, _) = weights.shape(&format!("{inner_name}.weight"))?;
        within(&inner_name, "rows", inner, 1, DIM_MAX)?;
        let dense = |part: &str, inputs, outputs| {
            Dense::read(weights, &[&within_layer(part)], inputs, outputs, precision)
        };
        let looks = ["query", "key", "value"].map(|part| within_layer(&format!("attention.self.{part}")));
        let [query, key, value] = &looks;
        Ok(Self {
            looks: Dense::read(weights, &[query, key, value], hidden, hidden, precision)?,
            attended: dense("attention.output.dense", hidden, hidden)?,
            attended_norm: Norm::read(weights, &within_layer("attention.output.LayerNorm"), hidden, eps)?,
            inner: dense("intermediate.dense", hidden, inner)?,
            outer: dense("output.dense", inner, hidden)?,
            norm: Norm::read(weights, &within_layer("output.LayerNorm"), hidden, eps)?,
        })
    }

    fn apply(&self, states: &mut [f32], heads: usize, room: &mut Room) {
        let hidden = self.norm.weight.len();
        self.looks.apply(states, &mut room.looks);
        attend(hidden, heads, room);
        self.attended.apply(&room.context, &mut room.added);
        self.attended_norm.apply_sum(states, &room.added);
        self.inner.apply(states, &mut room.inner);
        room.inner.iter_mut().for_each(|x| *x = gelu(*x));
        self.outer.apply(&room.inner, &mut room.added);
        self.norm.apply_sum(states, &room.added);
    }
}

/// Scaled dot-product attention of each head (Vaswani et al., 2017): from `looks` to `context`.
fn attend(hidden: usize, heads: usize, room: &mut Room) {
    let (tokens, width) = (room.looks.len() / (3 * hidden), hidden / heads);
    let scale = 1.0 / (width as f32).sqrt();
    room.context.clear();
    room.context.resize(tokens * hidden, 0.0);
    room.shares.resize(tokens, 0.0);
    for head in 0..heads {
        room.keys.clear();
        room.values.clear();
        room.values.resize(tokens * width, 0.0);
        for (at, row) in room.looks.chunks_exact(3 * hidden).enumerate() {
            room.keys.extend_from_slice(part(row, hidden + head * width, width));
            let column = room.values.iter_mut().skip(at).step_by(tokens);
            let value = part(row, 2 * hidden + head * width, width);
            column.zip(value).for_each(|(place, value)| *place = *value);
        }
        let rows = room.looks.chunks_exact(3 * hidden).zip(room.context.chunks_exact_mut(hidden));
        for (row, context) in rows {
            dot_f32_many(part(row, head * width, width), &room.keys, &mut room.shares);
            softmax(&mut room.shares, scale);
            let context = context.split_at_mut(head * width).1.split_at_mut(width).0;
            dot_f32_many(&room.shares, &room.values, context);
        }
    }
}

fn part(row: &[f32], from: usize, width: usize) -> &[f32] {
    row.split_at(from).1.split_at(width).0
}

fn softmax(scores: &mut [f32], scale: f32) {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = ((*score - largest) * scale).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

impl Norm {
    fn read(weights: &Weights<'_>, name: &str, hidden: usize, eps: f32) -> Result<Self> {
        let values = |part| weights.values(&format!("{name}.{part}"), &[hidden]);
        Ok(Self { weight: values("weight")?, bias: values("bias")?, eps })
    }

    /// Adds `added` to each row of `states`, and normalises each row.
    fn apply_sum(&self, states: &mut [f32], added: &[f32]) {
        states.iter_mut().zip(added).for_each(|(state, added)| *state += added);
        states.chunks_exact_mut(self.weight.len()).for_each(|state| self.apply(state));
    }

    /// Layer normalisation of one row (Ba et al., 2016).
    fn apply(&self, state: &mut [f32]) {
        let size = state.len() as f32;
        let mean = sum(state, |x| x) / size;
        let variance = sum(state, |x| (x - mean) * (x - mean)) / size;
        let scale = 1.0 / (variance + self.eps).sqrt();
        for ((x, weight), bias) in state.iter_mut().zip(&self.weight).zip(&self.bias) {
            *x = (*x - mean) * scale * weight + bias;
        }
    }
}

/// A sum in eight lanes, which a compiler may turn into one instruction.
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (blocks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0_f32; 8];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, x)| *lane += of(*x));
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}

/// Gaussian error linear unit (Hendrycks and Gimpel, 2016), exact: `x Φ(x)`.
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, as Eigen computes it for f32: a rational function that is everywhere within 4e-7 of
/// the exact value.
pub(super) fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let above = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024_1e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    let below = [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329_2e-3, -1.426_473_9e-2];
    let horner = |coefficients: &[f32]| coefficients.iter().fold(0.0, |sum, c| sum * square + c);
    x * horner(&above) / horner(&below)
}
