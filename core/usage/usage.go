// Package usage says what databases use: what agents see of them becomes samples of an hour each, and these the bill of a month.
// What nobody saw is missing, and never stands for nothing.
package usage

import (
	"math"
	"math/bits"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Activity is what was seen of a database in a span of time.
type Activity struct {
	SeenMs int64 `json:"seenMs" db:"seen_ms"` // for how long it was looked at
	// ActiveMs is for how long connections to the database were in use, of all together, and WaitingMs for how long clients waited
	// for one. The peaks are the most at a time.
	ActiveMs    int64 `json:"activeMs,omitempty" db:"active_ms"`
	WaitingMs   int64 `json:"waitingMs,omitempty" db:"waiting_ms"`
	ActivePeak  int   `json:"activePeak,omitempty" db:"active_peak"`
	WaitingPeak int   `json:"waitingPeak,omitempty" db:"waiting_peak"`
	// Queries and WaitUs are what the pooler has counted: queries, and the microseconds that clients had waited for the connections
	// that they got.
	Queries int64 `json:"queries,omitempty" db:"queries"`
	WaitUs  int64 `json:"waitUs,omitempty" db:"wait_us"`
}

// plus adds what was seen at another time.
func (a Activity) plus(b Activity) Activity {
	return Activity{
		SeenMs: a.SeenMs + b.SeenMs, ActiveMs: a.ActiveMs + b.ActiveMs, WaitingMs: a.WaitingMs + b.WaitingMs,
		ActivePeak: max(a.ActivePeak, b.ActivePeak), WaitingPeak: max(a.WaitingPeak, b.WaitingPeak),
		Queries: a.Queries + b.Queries, WaitUs: a.WaitUs + b.WaitUs,
	}
}

// Sample is what a database used in an hour.
type Sample struct {
	DatabaseID id.DatabaseID `db:"database_id"`
	Hour       time.Time     `db:"hour"` // when it began; of a day or a month where By has made it
	Activity
	Bytes         int64 `db:"bytes"`          // of the database, on average
	BackupBytes   int64 `db:"backup_bytes"`   // of its backups, likewise
	ConnectionCap int   `db:"connection_cap"` // the last one; 0: none
}

// Plus adds a later part of the same hour, or stretch.
func (s Sample) Plus(later Sample) Sample {
	s.Bytes = average(s.Bytes, s.SeenMs, later.Bytes, later.SeenMs)
	s.BackupBytes = average(s.BackupBytes, s.SeenMs, later.BackupBytes, later.SeenMs)
	s.Activity, s.ConnectionCap = s.plus(later.Activity), later.ConnectionCap
	return s
}

// Connections are how many connections were in use, on average.
func (s Sample) Connections() float64 { return ratio(s.ActiveMs, s.SeenMs) }

// Waiting is how many clients waited, on average.
func (s Sample) Waiting() float64 { return ratio(s.WaitingMs, s.SeenMs) }

// Sums are the sample's share of a bill.
func (s Sample) Sums() Sums {
	return Sums{
		SeenMs: s.SeenMs, ActiveMs: s.ActiveMs, ByteHours: scaled(s.Bytes, s.SeenMs, hourMs),
		BackupByteHours: scaled(s.BackupBytes, s.SeenMs, hourMs),
	}
}

// SumOf adds samples up.
func SumOf(samples []Sample) (sums Sums) {
	for _, s := range samples {
		sums = sums.Plus(s.Sums())
	}
	return sums
}

const hourMs = int64(time.Hour / time.Millisecond)

// ratio has four places: of an hour that is less than a second.
func ratio(sum, of int64) float64 {
	if of == 0 {
		return 0
	}
	return math.Round(float64(sum)/float64(of)*10_000) / 10_000
}

// average weighs two values; b where they weigh nothing. It rounds up, so that no part that is added takes from a sum.
func average(a, weightA, b, weightB int64) int64 {
	if weightA+weightB == 0 {
		return b
	}
	highA, lowA := bits.Mul64(uint64(a), uint64(weightA))
	highB, lowB := bits.Mul64(uint64(b), uint64(weightB))
	low, carry := bits.Add64(lowA, lowB, 0)
	high, _ := bits.Add64(highA, highB, carry)
	quotient, rest := bits.Div64(high, low, uint64(weightA+weightB))
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// scaled is a value times a part of a whole; none, where either is below 0, and no more than a number can be.
func scaled(value, part, whole int64) int64 {
	if value <= 0 || part <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(value), uint64(part))
	if high >= uint64(whole) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(min(quotient, math.MaxInt64))
}
