//! The tensors of a safetensors file, and the matrices made from them.

use super::folder::WEIGHTS;
use super::precision::Precision;
use crate::error::{Error, Result};
use crate::vector::{dot_f32_many, dot_i8_many};
use safetensors::{Dtype, SafeTensors};

/// The bytes of weights that one step of a product uses for all tokens before the next weights. They stay in
/// the nearest cache.
const BLOCK_BYTES: usize = 24 << 10;

/// The number of steps of a code on each side of zero.
const CODE_MAX: f32 = 127.0;

/// The tensors of a file. Each is checked when it is asked for.
pub(super) struct Weights<'a>(SafeTensors<'a>);

impl<'a> Weights<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        match SafeTensors::deserialize(bytes) {
            Ok(tensors) => Ok(Self(tensors)),
            Err(error) => Err(Error::invalid(WEIGHTS, format!("must be safetensors: {error}"), "this file")),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    /// The numbers of rows and columns of a matrix.
    pub(super) fn shape(&self, name: &str) -> Result<(usize, usize)> {
        match self.tensor(name)?.shape() {
            [rows, columns] => Ok((*rows, *columns)),
            other => Err(Error::invalid(name, "must have 2 axes", format!("{other:?}"))),
        }
    }

    /// The values of a tensor, which must have exactly this shape.
    pub(super) fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.tensor(name)?;
        if tensor.shape() != shape {
            return Err(Error::invalid(
                name,
                format!("must have the shape {shape:?}"),
                format!("{:?}", tensor.shape()),
            ));
        }
        if tensor.dtype() != Dtype::F32 {
            return Err(Error::invalid(name, "must be F32", format!("{:?}", tensor.dtype())));
        }
        let (values, _) = tensor.data().as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(Error::invalid(name, "must be finite", value)),
            None => Ok(values),
        }
    }

    fn tensor(&self, name: &str) -> Result<safetensors::tensor::TensorView<'a>> {
        self.0.tensor(name).map_err(|_| Error::invalid(name, format!("must be in {WEIGHTS}"), "missing"))
    }
}

/// A matrix, stored row by row.
#[derive(Debug)]
pub(super) enum Matrix {
    F32(Vec<f32>),
    Int8 {
        codes: Vec<i8>,
        /// The value of one step of a code, for each row.
        scales: Vec<f32>,
    },
}

impl Matrix {
    pub(super) fn new(values: Vec<f32>, columns: usize, precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32(values),
            Precision::Int8 => {
                let (codes, scales) = quantise(&values, columns);
                Self::Int8 { codes, scales }
            }
        }
    }

    /// Adds row `row` to `sums`, which has as many columns as the matrix.
    pub(super) fn add_row(&self, row: usize, sums: &mut [f32]) {
        let columns = sums.len();
        match self {
            Self::F32(values) => {
                let row = values.chunks_exact(columns).nth(row).into_iter().flatten();
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            Self::Int8 { codes, scales } => {
                let scale = scales.get(row).copied().unwrap_or(0.0);
                let row = codes.chunks_exact(columns).nth(row).into_iter().flatten();
                sums.iter_mut().zip(row).for_each(|(sum, code)| *sum += scale * f32::from(*code));
            }
        }
    }
}

/// A layer `y = W x + b`.
#[derive(Debug)]
pub(super) struct Dense {
    matrix: Matrix,
    bias: Vec<f32>,
    inputs: usize,
}

impl Dense {
    /// Reads the layers `names`, one below the other. Their outputs stand side by side.
    pub(super) fn read(
        weights: &Weights<'_>,
        names: &[&str],
        inputs: usize,
        outputs: usize,
        precision: Precision,
    ) -> Result<Self> {
        let (mut values, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            values.extend(weights.values(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(weights.values(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(Self { matrix: Matrix::new(values, inputs, precision), bias, inputs })
    }

    /// Applies the layer to each row of `input`.
    pub(super) fn apply(&self, input: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.resize(input.len() / self.inputs * self.bias.len(), 0.0);
        match &self.matrix {
            Matrix::F32(values) => self.apply_f32(values, input, out),
            Matrix::Int8 { codes, scales } => self.apply_i8(codes, scales, input, out),
        }
    }

    fn apply_f32(&self, values: &[f32], input: &[f32], out: &mut [f32]) {
        let rows = (BLOCK_BYTES / 4 / self.inputs).max(1);
        let mut before = 0;
        for (block, bias) in values.chunks(rows * self.inputs).zip(self.bias.chunks(rows)) {
            for (x, y) in input.chunks_exact(self.inputs).zip(out.chunks_exact_mut(self.bias.len())) {
                let y = y.split_at_mut(before).1.split_at_mut(bias.len()).0;
                dot_f32_many(x, block, y);
                y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
            }
            before += bias.len();
        }
    }

    fn apply_i8(&self, codes: &[i8], scales: &[f32], input: &[f32], out: &mut [f32]) {
        let rows = (BLOCK_BYTES / self.inputs).max(1);
        let (tokens, token_scales) = quantise(input, self.inputs);
        let (mut before, mut dots) = (0, vec![0; rows]);
        let blocks = codes.chunks(rows * self.inputs).zip(self.bias.chunks(rows)).zip(scales.chunks(rows));
        for ((block, bias), scales) in blocks {
            let dots = dots.split_at_mut(bias.len()).0;
            let tokens = tokens.chunks_exact(self.inputs).zip(&token_scales);
            for ((x, x_scale), y) in tokens.zip(out.chunks_exact_mut(self.bias.len())) {
                dot_i8_many(x, block, dots);
                let y = y.split_at_mut(before).1.iter_mut();
                for (((y, dot), scale), bias) in y.zip(dots.iter()).zip(scales).zip(bias) {
                    *y = *dot as f32 * (x_scale * scale) + bias;
                }
            }
            before += bias.len();
        }
    }
}

/// Each row as signed bytes, and the value of one step, chosen so that the largest value of the row is 127
/// steps.
fn quantise(values: &[f32], columns: usize) -> (Vec<i8>, Vec<f32>) {
    /// Adding 1.5 · 2²³ leaves the nearest integer, ties to even, in the low bits of the sum.
    const ROUNDS: f32 = 12_582_912.0;
    let mut codes = Vec::with_capacity(values.len());
    let scales = values.chunks_exact(columns).map(|row| {
        let largest = row.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let steps = if largest > 0.0 { CODE_MAX / largest } else { 0.0 };
        codes.extend(row.iter().map(|value| (value * steps + ROUNDS).to_bits() as i8));
        largest / CODE_MAX
    });
    let scales = scales.collect();
    (codes, scales)
}
