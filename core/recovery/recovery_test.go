package recovery

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestWhichMomentsCanBeHadBack(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	w := Window{From: ago(10 * time.Hour), To: ago(time.Minute), Gaps: []Gap{
		{ago(5 * time.Hour), ago(4 * time.Hour), SegmentsMissing},
	}}
	const refused = fault.PointNotRecoverable
	for name, c := range map[string]struct {
		window Window
		at     time.Time
		want   fault.Code
	}{
		"before the first":        {w, ago(10*time.Hour + time.Second), refused},
		"the first":               {w, ago(10 * time.Hour), ""},
		"before the gap":          {w, ago(5 * time.Hour), ""},
		"in the gap":              {w, ago(5*time.Hour - time.Microsecond), refused},
		"the end of the gap":      {w, ago(4 * time.Hour), ""},
		"the last":                {w, ago(time.Minute), ""},
		"later than what is kept": {w, now, ""},
		"by another clock":        {w, now.Add(time.Second), ""},
		"in the future":           {w, now.Add(time.Hour), fault.ValidationError},
		"an empty window":         {Window{}, ago(time.Hour), refused},
	} {
		err := c.window.Check(c.at, now)
		if (c.want == "") != (err == nil) || err != nil && !fault.Has(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
