package preview

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestRefs(t *testing.T) {
	for _, good := range []string{"a", " ", "refs/heads/main", strings.Repeat("ä", MostRef), "🛒 shop"} {
		if err := CheckRef(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("a", MostRef+1), "a\nb", "\x00", "\u0085", "a\xff"} {
		if err := CheckRef(bad); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A name is one of a database that nobody can choose, and each namespace, ref and use has another one.
func TestNamesAndLabels(t *testing.T) {
	const one, two = id.NamespaceID("0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f"), id.NamespaceID("11111111-2222-4333-8444-555555555555")
	seen := map[string]string{}
	for _, namespace := range []id.NamespaceID{one, two} {
		for _, ref := range []string{"main", "1 main", "Main", "main ", strings.Repeat("ä", MostRef)} {
			for use := 1; use < 30; use++ {
				name := Name(namespace, ref, use)
				if err := database.ValidateName(name); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := database.ValidateChosenName(name); !fault.Has(err, fault.ValidationError) {
					t.Fatalf("a customer may call a database %s: %v", name, err)
				}
				key := string(namespace) + ref + string(rune(use))
				if other, twice := seen[name]; twice {
					t.Fatalf("%q and %q are both %s", other, key, name)
				}
				seen[name] = key
				if label, err := database.ValidateDisplayName(DisplayName(ref)); err != nil || label != DisplayName(ref) {
					t.Fatalf("%q: %v", DisplayName(ref), err)
				}
			}
		}
	}
	// The names of previews that exist must not change.
	if got := Name(one, "refs/pull/17", 1); got != pinned {
		t.Error(got)
	}
}

func TestReplay(t *testing.T) {
	asked := Choices{TTLHours: 24, ScheduledBackup: database.NoSchedule}
	p := New("d", "n", "main", 1, asked, now)
	copied := asked
	copied.SourceID, copied.SourceAt = "s", new(now.In(time.FixedZone("", 3600)))
	copiedThen, copiedOther := copied, copied
	copiedThen.SourceAt, copiedOther.SourceID = new(now.Add(time.Microsecond)), "t"
	held := New("d", "n", "main", 1, copied, now)
	again := copied
	again.SourceAt = &now
	names := func(l Lease) []fault.Detail { return []fault.Detail{{Field: LeaseField, Issue: string(l)}} }
	for name, c := range map[string]struct {
		preview Preview
		choices Choices
		want    fault.Code
		details []fault.Detail
	}{
		"the same":            {p, asked, "", nil},
		"another length":      {p, Choices{TTLHours: 25, ScheduledBackup: database.NoSchedule}, fault.PreviewConflict, nil},
		"another schedule":    {p, Choices{TTLHours: 24, ScheduledBackup: database.Daily}, fault.PreviewConflict, nil},
		"data of a database":  {p, copied, fault.PreviewConflict, nil},
		"the same data":       {held, again, "", nil},
		"no data":             {held, asked, fault.PreviewConflict, nil},
		"of another moment":   {held, copiedThen, fault.PreviewConflict, nil},
		"of another database": {held, copiedOther, fault.PreviewConflict, nil},
		"after its time":      {p.At(now.Add(24 * time.Hour)), asked, fault.PreviewConflict, names(Expired)},
		"while it is deleted": {in(p, Deleting), asked, fault.PreviewConflict, names(Deleting)},
		"while it comes back": {in(p, Recovering), asked, fault.PreviewConflict, names(Deleted)},
	} {
		err := c.preview.Replay(c.choices)
		if fault.Has(err, c.want) != (c.want != "") || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v", name, err)
		}
		var refused *fault.Error
		var named []fault.Detail
		if errors.As(err, &refused) {
			named = refused.Details
		}
		if !slices.Equal(named, c.details) {
			t.Errorf("%s: it names %v", name, named)
		}
	}
	extended, err := p.Extend(72, now)
	if err != nil || extended.Replay(asked) != nil {
		t.Errorf("an extended one is another one: %v", err)
	}
}

func in(p Preview, l Lease) Preview {
	p.Lease = l
	return p
}

func TestHours(t *testing.T) {
	for hours, good := range map[int]bool{-1: false, 0: false, 1: true, 24: true, 72: true, 73: false} {
		if err := CheckHours(hours); (err == nil) != good {
			t.Errorf("%d: %v", hours, err)
		}
	}
}

// Whatever happens in whatever order: no lease gets shorter by a renewal or longer than 72 hours, its generation never falls,
// only an active one is renewed, an expired one is due for its end and no other is, and a deletion has one outcome.
func TestLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := now
		p := New("d", "n", "main", 1, Choices{
			TTLHours: rapid.IntRange(1, MostHours).Draw(t, "ttl"), ScheduledBackup: database.NoSchedule,
		}, at)
		open := false // a delete operation
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "hours")) * time.Hour)
			before := p.At(at)
			var next Preview
			var err error
			event := rapid.SampledFrom(Events).Draw(t, "event")
			switch event {
			case Extend:
				next, err = p.Extend(rapid.IntRange(1, MostHours).Draw(t, "by"), at)
				if (err == nil) != (before.Lease == Active) {
					t.Fatalf("extended while %s: %v", before.Lease, err)
				}
				if err == nil && (next.ExpiresAt.Before(before.ExpiresAt) || next.Generation != p.Generation+1) {
					t.Fatalf("%+v became %+v", before, next)
				}
			case Configure:
				next, err = p.Configure(at)
			case Expire:
				next, err = p.Release(at)
			case End:
				next, _, err = p.End(at, rapid.Bool().Draw(t, "by the service"))
			default:
				next, err = p.Follow(event, at)
			}
			if err != nil {
				continue
			}
			if event == EndFailed || event == Ended {
				if !open {
					t.Fatalf("%s without a deletion", event)
				}
			}
			open = next.Lease == Deleting
			if next.Generation < p.Generation || next.ExpiresAt.Sub(at) > MostHours*time.Hour {
				t.Fatalf("%s made %+v of %+v", event, next, p)
			}
			if (next.Lease == Expired) != (next.EndAt != nil) || next.EndingSince != nil && next.Lease != Deleting {
				t.Fatalf("%s: %+v", event, next)
			}
			p = next
		}
	})
}

func TestPauses(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 30 * time.Second, 2: time.Minute, 7: 32 * time.Minute, 12: 1024 * time.Minute, 13: 24 * time.Hour, 100: 24 * time.Hour,
		1 << 40: 24 * time.Hour,
	} {
		if got := Pause(failures); got != want {
			t.Errorf("%d: %s", failures, got)
		}
	}
}

const pinned = "preview-zwj4xzybhxf7fkoqp3zswayt5k7nxu477kcnxqai"
