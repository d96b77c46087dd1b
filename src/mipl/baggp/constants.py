"""Every number of BagGP that is not a parameter, with its reason.

All were settled on development splits of the five data sets of the MIPLGP paper (seeds 0 to 4), by the accuracy of
resolved training bags and of test bags; reported results come from other seeds. docs/development/baggp.md has the
experiments.
"""

from __future__ import annotations

from typing import NamedTuple

# ---------------------------------------------------------------- bag regression

#: Variances of the regression function, in units of the targets' variance (1/q)(1 - 1/q). The small one smooths much
#: and suits data in which an instance says little of its bag's label (text); the large one suits images and sounds.
SIGNAL_VARIANCES = (0.01, 1.0)
#: The same for the start, whose targets are noisier.
START_VARIANCE = 0.5
#: Slope of the instance logits in standard deviations of the scores: two of them set good instances apart.
SLOPE = 2.0
#: Rounds of regression; most fits converge in four to eight.
REGRESSION_ITERATIONS = 8
#: Mean absolute change of the bag posterior at which the rounds stop.
REGRESSION_TOLERANCE = 1e-3
#: Smallest variance of scores that is divided by.
MIN_SCORE_VARIANCE = 1e-12
#: Steps in which the share of the instances that a fit has is told apart, for leaving out a bag's own vote.
SHARE_STEPS = 20

# ---------------------------------------------------------------- bag likelihood


class Stage(NamedTuple):
    """L-BFGS iterations at a prior variance of the weights, with the label posterior held at the prior or not.

    Only a share of the features has weights, the principal ones; the weights of the others stay zero.
    """

    iterations: int
    variance: float
    hold_prior: bool
    share: float = 1.0


#: Broad structure before detail: instances are first learned from the regression's answer, then from the candidate
#: sets under a wide prior. Starting there memorises on images. The principal features suffice for the broad structure,
#: in a quarter of the time.
STAGES = (
    Stage(12, 30.0, True, 0.25),
    Stage(20, 300.0, False),
)
#: Factor of the regression's log evidence, which is too sure, in the prior of the likelihood. Less is better on images
#: and SIVAL, and worse where little is known of most bags: the likelihood then settles on one class.
PRIOR_TEMPER = 0.5
#: Share of positive instances that the fixed biases expect; the weights correct it.
EXPECTED_POSITIVE_SHARE = 0.1
#: Logit of an instance for the background class, which no instance carries.
NEVER = -1e3
#: Smallest prior probability of a candidate: the regression may be wrong, but not infinitely sure.
MIN_PRIOR = 1e-8
#: Largest entry of the whitened gradient at which L-BFGS stops.
LBFGS_GRADIENT = 1e-3

# ---------------------------------------------------------------- class offsets

#: How far class shares are pulled together: 0 not at all, 1 to equality.
OFFSET_STRENGTH = 0.9
#: Share of a class below which its offset grows no further.
MIN_CLASS_SHARE = 1e-6
#: Fixed-point steps; each at least halves the distance.
OFFSET_STEPS = 20

# ---------------------------------------------------------------- learned metric

#: Landmarks, features and stages of the fits to halves, in a tenth of the time of the fit that follows: fewer give a
#: worse metric, more the same.
METRIC_LANDMARKS, METRIC_RANK = 600, 200
METRIC_STAGES = (Stage(8, 30.0, True), Stage(12, 300.0, False))
#: Instances that the gradients are a mean over.
METRIC_ROWS = 2000
#: Share of the variance that the gradients direct; the rest is left alike in all directions.
METRIC_SHARE = 0.9
#: What is negative in the mean, beside what is positive, above which the halves do not agree on anything.
METRIC_DISAGREEMENT = 0.25
#: Nats per held-out bag that a metric must gain, besides two standard errors.
METRIC_GAIN = 0.03
#: Fewest bags, since of fewer the gain is seldom clear, and most features of the front end, since in more dimensions
#: gradients are mostly noise.
METRIC_BAGS, METRIC_DIMENSIONS = 200, 150

# ---------------------------------------------------------------- cross-fitting and stacking

#: Training instances above which two folds replace more: models of half of so many bags are as good as the full one.
TWO_FOLDS_INSTANCES = 200_000
#: A fold has at least so many bags; with fewer than two such folds the modes of the priors below are taken.
MIN_FOLD_BAGS = 4
#: Prior on the common scale of both experts' log evidence, which is over-confident as a rule: mode and precision of
#: its logarithm. Weak: a few dozen bags decide.
PRIOR_SCALE, SCALE_PRECISION = 0.3, 0.2
#: Precision of the logit of the second expert's share in the answer, around one half. Where both experts are good,
#: the candidate sets hardly tell them apart, and a free share runs away.
MIXING_PRECISION = 2.0
#: Prior on the rate of outlying bags: mode, and precision of its logit.
PRIOR_OUTLIER_RATE, OUTLIER_PRECISION = 0.02, 0.5
#: Prior odds that the instances say anything about the candidate sets at all.
INFORMATIVE_ODDS = 3.0
#: Log odds below the best class at which an expert has nothing more to say against a class.
MAX_LOG_ODDS = 30.0
#: Largest slope of the log posterior per bag at which the search for the stacking stops, and its iterations at most;
#: ten to twenty are the rule.
STACKING_GRADIENT, STACKING_ITERATIONS = 1e-6, 100
#: Bags at a time in that computation, so that they stay in the cache.
STACKING_BAGS = 4096

# ---------------------------------------------------------------- votes

#: Weights up to which whole numbers are taken for counts of people; larger ones are odds.
MOST_VOTES = 1e6
#: Prior on votes: mode of the share that is no accident (.8), of the concentration of a bag's chances around its label
#: (20 is a correlation of .05), and precisions of the logit and of the logarithm. People who err independently have no
#: limit.
PRIOR_SIGNAL, PRIOR_CONCENTRATION, VOTES_PRECISION = 0.8, 20.0, (0.5, 0.25)
#: Share of bags in which everybody sees another thing than what is there: no crowd is believed beyond 99 in 100.
#: Instances that contradict all people may as well be wrong themselves, so the share cannot be estimated.
VOTE_OUTLIER_RATE = 0.01
#: Prior on the strength of odds: mode one, odds taken as they are, and precision of the logarithm.
PRIOR_VOTE_STRENGTH, VOTE_STRENGTH_PRECISION = 1.0, 1.0

# ---------------------------------------------------------------- candidate noise

#: Beta prior on the share of candidate sets that lack their label: most probably none, one in ten on average.
CANDIDATE_NOISE_PRIOR = (1.0, 9.0)
#: Points at which the posterior of that share is computed: rates, and scales of the log evidence (least, largest, how
#: many), over which it is summed. Both a large scale with noise and a small one without may explain the sets.
NOISE_RATES, NOISE_SCALES = 201, (0.03, 10.0, 30)
#: Bags at a time in that computation.
NOISE_BAGS = 4096

# ---------------------------------------------------------------- memory and time

#: Features that are kept in any case where there are as many landmarks, and that each stage of the likelihood has.
FEWEST_FEATURES = 200
#: Training instances above which front end, length scale and landmarks are found on a random sample of that many.
SAMPLE_INSTANCES = 200_000
#: Instances per run of bags: bounds the working arrays (n, q) and the kernel (n, M) of its blocks.
RUN_INSTANCES = 32_768
#: Columns, q + 1 per fit, up to which fits of the bag likelihood share their passes. In double precision L-BFGS keeps
#: 20 arrays (R, columns), and reading a block takes some ten arrays (n, columns).
SHARED_COLUMNS = 512
#: Sums that are added up at a time, in the tree in which the sums of runs are added up.
SUM_FAN_IN = 8
#: Rows at a time where the features of a block are gone through, so that a piece of them stays in the cache.
CHUNK_ROWS = 1024
#: Columns of a Gram matrix at a time, of which only the upper triangle is computed.
GRAM_STRIP = 128
#: Rows whose features are held at a time in a prediction.
PREDICTION_ROWS = 4096
#: Blocks of a prediction are padded to a multiple of so many rows, and to so many at least: matrix products take other
#: ways for fewer rows, with other last digits.
PREDICTION_TILE, PREDICTION_LEAST = 8, 16
#: Multiplications of one half of a prediction's features from which another thread is asked for the other half.
SHARED_PRODUCTS = 10_000_000
#: Up to this many training instances, a block has bags of all folds: small blocks cost more than they save.
JOINED_INSTANCES = 4_000
#: With fewer training instances one thread is used: threads would wait for each other longer than they work.
ONE_THREAD_INSTANCES = 4_000
#: Rows of one batch of leave-one-bag-out inverses, which stays in the cache, and how far bags are padded to share one.
LEAVE_OUT_ROWS, LEAVE_OUT_PADDING = 2048, 1.25

#: Least certain bags among which `BagGP.label_order` compares all pairs; memory grows with the square, times classes.
LABELLING_BAGS = 1_500
