package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Stretch is what an agent saw of its server's databases in a span of time, or a part of that.
type Stretch struct {
	Name      string `json:"name"`     // the same for the parts of one, and for no other
	EndedMs   int64  `json:"endedMs"`  // how long before the answer it ended
	LastedMs  int64  `json:"lastedMs"` // how long it is
	Databases []Seen `json:"databases"`
}

// Seen is what an agent saw of one database.
type Seen struct {
	DatabaseID id.DatabaseID `json:"databaseId"`
	Activity
}

// Taken is up to where what the agent of a server saw is stored.
type Taken struct {
	ServerID id.ServerID `db:"server_id"`
	Position string      `db:"position"` // as the agent names it; empty: from the start
	// Until is when it is that what was stored last ended: nothing is added to what was before.
	Until   time.Time `db:"until"`
	AskedAt time.Time `db:"asked_at"`
}

// Every is how often an agent is asked, and how long a stretch of an agent that nobody asks is.
const Every = 10 * time.Minute

// Due reports whether an agent is to be asked. A time that has not come yet was that of a wrong clock.
func (t Taken) Due(now time.Time) bool {
	return !t.AskedAt.After(now.Add(-Every)) || t.AskedAt.After(now.Add(tolerance))
}

const (
	// slack is how far from each other stretches may seem to lie that follow each other: an answer takes its time.
	slack = 2 * time.Second
	// tolerance is by how much a stretch may seem to begin before the end of the last one, as clocks drift and are set right.
	tolerance = time.Minute
	// stray is how far ahead what was stored may be while a clock that was set back is waited for. Beyond that, the clock was
	// wrong when it was stored.
	stray = 24 * time.Hour
	// longest and oldest bound what is believed of a stretch. No agent makes one that is half as long.
	longest = time.Hour
	oldest  = 7 * 24 * time.Hour
)

// Place finds the hours of what an agent answered at a time, by that time alone, and says up to where it is then stored. A
// stretch that begins where the one before ended is put right behind it, so that nothing counts twice, nor is lost. One that lies
// in what is stored already is left out: the clock was set back.
func (t Taken) Place(answered []Stretch, now time.Time) ([]Sample, time.Time) {
	placed := map[sampleKey]Sample{}
	var name string
	var from, to time.Time
	until, now := t.Until, now.Truncate(time.Millisecond)
	if until.After(now.Add(stray)) {
		until = time.Time{}
	}
	for _, s := range answered {
		if !s.credible() {
			continue
		}
		if s.Name != name {
			to = now.Add(-time.Duration(s.EndedMs) * time.Millisecond)
			from = to.Add(-time.Duration(s.LastedMs) * time.Millisecond)
			if from.Before(until.Add(-tolerance)) {
				continue
			}
			if from.Before(until.Add(slack)) {
				from = until
			}
			if name = s.Name; !to.After(from) {
				to = from.Add(time.Millisecond)
			}
			until = to
		}
		for _, d := range s.Databases {
			divide(placed, d.within(s.LastedMs, from, to), from, to)
		}
	}
	list := slices.SortedFunc(maps.Values(placed), func(a, b Sample) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.DatabaseID, b.DatabaseID))
	})
	return list, until
}

func (s Stretch) credible() bool {
	return s.LastedMs > 0 && s.LastedMs <= longest.Milliseconds() && s.EndedMs >= 0 && s.EndedMs <= oldest.Milliseconds()
}

// within gives what was seen in a stretch the length that the stretch has by the clock of who asked.
func (d Seen) within(lastedMs int64, from, to time.Time) Seen {
	whole := to.Sub(from).Milliseconds()
	d.SeenMs = scaled(min(d.SeenMs, lastedMs), whole, lastedMs)
	d.ActiveMs, d.WaitingMs = scaled(d.ActiveMs, whole, lastedMs), scaled(d.WaitingMs, whole, lastedMs)
	return d
}

type sampleKey struct {
	database id.DatabaseID
	hour     time.Time
}

// divide adds what was seen of a database to its hours, to each as much as it has of the time. The peaks go where most of that
// lies.
func divide(placed map[sampleKey]Sample, d Seen, from, to time.Time) {
	whole := max(1, to.Sub(from).Milliseconds())
	peaksIn := from.Add(to.Sub(from) / 2).UTC().Truncate(time.Hour)
	for hour := from.UTC().Truncate(time.Hour); hour.Before(to); hour = hour.Add(time.Hour) {
		begin := max(0, hour.Sub(from).Milliseconds())
		end := min(whole, hour.Add(time.Hour).Sub(from).Milliseconds())
		share := func(v int64) int64 { return scaled(v, end, whole) - scaled(v, begin, whole) }
		part := Activity{
			SeenMs: share(d.SeenMs), ActiveMs: share(d.ActiveMs), WaitingMs: share(d.WaitingMs), Queries: share(d.Queries),
			WaitUs: share(d.WaitUs),
		}
		if hour.Equal(peaksIn) {
			part.ActivePeak, part.WaitingPeak = d.ActivePeak, d.WaitingPeak
		}
		if part != (Activity{}) {
			key := sampleKey{d.DatabaseID, hour}
			placed[key] = Sample{DatabaseID: d.DatabaseID, Hour: hour, Activity: placed[key].plus(part)}
		}
	}
}
