package doctor

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/move"
)

func TestExamineForwards(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	listed := func(failure string) []command.InventoryForward {
		return []command.InventoryForward{{DatabaseID: patient, Name: "shop", Until: at.Add(time.Hour), Failure: failure}}
	}
	wanted := func(change func(*Forward)) []Forward {
		f := Forward{Forward: move.Forward{DatabaseID: patient, Until: at.Add(time.Hour)}, Name: "shop"}
		if change != nil {
			change(&f)
		}
		return []Forward{f}
	}
	for what, c := range map[string]struct {
		has  []command.InventoryForward
		cut  bool
		busy bool
		want []Forward
		code Code
	}{
		"none":                             {},
		"as the metadata have it":          {has: listed(""), want: wanted(nil)},
		"unknown":                          {has: listed(""), code: ForwardUnknown},
		"unknown while it comes back":      {has: listed(""), busy: true},
		"unknown, to one that is away":     {has: listed("it is away"), code: ForwardUnknown},
		"to one that is away":              {has: listed("it is away"), want: wanted(nil), code: ForwardFails},
		"missing":                          {want: wanted(nil), code: ForwardMissing},
		"perhaps not listed":               {cut: true, want: wanted(nil)},
		"missing while the database moves": {want: wanted(func(f *Forward) { f.Passing = true })},
		"over":                             {want: wanted(func(f *Forward) { f.Until = at })},
		"over, and still there":            {has: listed(""), want: wanted(func(f *Forward) { f.Until = at })},
		"ended":                            {want: wanted(func(f *Forward) { f.EndedAt = &at })},
	} {
		var codes []Code
		if c.code != "" {
			codes = append(codes, c.code)
		}
		t.Run(what, func(t *testing.T) {
			beside := Around{Busy: map[string]bool{"shop": c.busy}}
			wantCodes(t, ExamineForwards(command.Strays{Forwards: c.has, Cut: c.cut}, c.want, beside, at), codes...)
		})
	}
}
