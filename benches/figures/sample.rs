//! Rows that look like memories: texts of a few hundred bytes, clustered unit vectors, keys, tags, metadata.

use oubliette::Draft;

pub const DIM: usize = 384;

/// A small generator with a seed, so that every run sees the same rows.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        ((0..4).map(|_| self.unit()).sum::<f64>() - 2.0) as f32 * 1.73
    }
}

pub struct Sample {
    pub texts: Vec<String>,
    pub vectors: Vec<Vec<f32>>,
}

const WORDS: [&str; 24] = [
    "the", "gateway", "answers", "late", "when", "queue", "grows", "Ann", "prefers", "tea", "over", "coffee",
    "deploy", "failed", "on", "main", "because", "of", "a", "missing", "library", "and", "was", "repaired",
];

/// Words of a language.
const VOCABULARY: usize = 20_000;

/// The word of a rank: a made-up one of syllables.
pub fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 28] = [
        "ka", "to", "mi", "re", "su", "lo", "va", "ne", "ti", "po", "da", "gu", "ri", "fo", "ze", "ha", "mo",
        "lu", "ba", "ke", "sa", "no", "vi", "te", "pa", "do", "gi", "ru",
    ];
    let mut word = String::new();
    let mut rest = rank;
    loop {
        word.push_str(SYLLABLES[rest % 28]);
        rest /= 28;
        if rest == 0 {
            return word + "m";
        }
    }
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|v| *v /= norm);
    vector
}

/// A unit vector near another.
pub fn near(center: &[f32], spread: f32, rng: &mut Rng) -> Vec<f32> {
    let scale = spread / (center.len() as f32).sqrt();
    unit(center.iter().map(|v| v + rng.normal() * scale).collect())
}

impl Sample {
    /// Rows in clusters of about 50, as real embeddings are.
    pub fn new(rows: usize, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let centers: Vec<Vec<f32>> =
            (0..rows.div_ceil(50)).map(|_| unit((0..DIM).map(|_| rng.normal()).collect())).collect();
        let vectors = (0..rows).map(|at| near(&centers[at % centers.len()], 0.8, &mut rng)).collect();
        Sample { texts: texts(rows, &mut rng), vectors }
    }

    /// Rows that lie all within cosine 0.99 of each other.
    pub fn near_equal(rows: usize, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let center = unit((0..DIM).map(|_| rng.normal()).collect());
        let vectors = (0..rows).map(|_| near(&center, 0.07, &mut rng)).collect();
        Sample { texts: texts(rows, &mut rng), vectors }
    }

    /// The same with texts whose words are as frequent as those of a language: the word of rank r in proportion to
    /// 1 / (r + 2.7) (Zipf and Mandelbrot).
    pub fn of_many_words(rows: usize, seed: u64) -> Self {
        let mut sample = Sample::new(rows, seed);
        let (mut rng, mut sum) = (Rng(seed + 1), 0.0);
        let sums: Vec<f64> = (0..VOCABULARY)
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        for (at, text) in sample.texts.iter_mut().enumerate() {
            *text = format!("{at}:");
            for _ in 0..25 + rng.next() % 50 {
                let drawn = rng.unit() * sum;
                text.push(' ');
                text.push_str(&word(sums.partition_point(|sum| *sum < drawn)));
            }
        }
        sample
    }

    pub fn key(at: usize) -> String {
        format!("record-{at:07}")
    }

    pub fn tag(at: usize) -> String {
        format!("topic-{}", at % 40)
    }

    pub fn metadata(at: usize) -> serde_json::Value {
        serde_json::json!({"session": format!("s{}", at / 30), "turn": at % 30})
    }

    pub fn drafts(&self) -> Vec<Draft> {
        let draft = |(at, (text, vector)): (usize, (&String, &Vec<f32>))| {
            Draft::new(text.clone())
                .key(Sample::key(at))
                .tag("bench")
                .tag(Sample::tag(at))
                .metadata(Sample::metadata(at))
                .vector(vector.clone())
        };
        self.texts.iter().zip(&self.vectors).enumerate().map(draft).collect()
    }

    /// As many bytes as the codes of these rows have.
    pub fn codes(&self) -> Vec<u8> {
        self.vectors.iter().flatten().map(|v| (v * 800.0) as i8 as u8).collect()
    }

    /// Text, metadata with keys and tags, f32 vectors and codes.
    pub fn payload_bytes(&self) -> usize {
        let text: usize = self.texts.iter().map(String::len).sum();
        let around: usize = (0..self.texts.len())
            .map(|at| {
                Sample::metadata(at).to_string().len() + Sample::key(at).len() + Sample::tag(at).len() + 5
            })
            .sum();
        text + around + self.vectors.len() * DIM * 5
    }
}

fn texts(rows: usize, rng: &mut Rng) -> Vec<String> {
    (0..rows)
        .map(|at| {
            let words = 25 + (rng.next() % 50) as usize;
            let mut text = format!("{at}:");
            for _ in 0..words {
                text.push(' ');
                text.push_str(WORDS[(rng.next() % 24) as usize]);
            }
            text
        })
        .collect()
}
