package usage

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Resolution is how long the stretches are that usage is shown by. They begin in UTC.
type Resolution string

// The resolutions.
const (
	Hourly  Resolution = "hourly"
	Daily   Resolution = "daily"
	Monthly Resolution = "monthly"
)

// Resolutions are all, the finest first.
var Resolutions = []Resolution{Hourly, Daily, Monthly}

// Values lists them for the API's description.
func (Resolution) Values() []Resolution { return Resolutions }

// ParseResolution reads one. VALIDATION_ERROR on "resolution".
func ParseResolution(text string) (Resolution, error) {
	return fault.OneOf("resolution", text, Resolutions...)
}

const day = 24 * time.Hour

// begin is when the stretch begins that a time lies in.
func (r Resolution) begin(t time.Time) time.Time {
	switch r {
	case Monthly:
		return MonthOf(t)
	case Daily:
		return t.UTC().Truncate(day)
	case Hourly:
	}
	return t.UTC().Truncate(time.Hour)
}

// By makes of the samples of a database, which are sorted, one for each stretch.
func (r Resolution) By(samples []Sample) (list []Sample) {
	for _, s := range samples {
		s.Hour = r.begin(s.Hour)
		if last := len(list) - 1; last >= 0 && list[last].Hour.Equal(s.Hour) {
			list[last] = list[last].Plus(s)
			continue
		}
		list = append(list, s)
	}
	return list
}

// Part is what a database came to in a stretch.
type Part struct {
	At time.Time // when it began
	Sums
}

// Parts divides what databases came to. Samples are sorted by hour.
func (r Resolution) Parts(samples []Sample) map[id.DatabaseID][]Part {
	of := map[id.DatabaseID][]Part{}
	for _, s := range samples {
		list, at := of[s.DatabaseID], r.begin(s.Hour)
		if len(list) == 0 || !list[len(list)-1].At.Equal(at) {
			list = append(list, Part{At: at})
		}
		last := &list[len(list)-1]
		last.Sums = last.Plus(s.Sums())
		of[s.DatabaseID] = list
	}
	return of
}
