package previews

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// model is a server on which the deletions of each account take so long, and how many of each are left.
type model struct {
	shares
	now    time.Time
	takes  map[id.AccountID]time.Duration
	left   map[id.AccountID]int
	ending []ports.EndingPreview
	began  time.Time
}

func newModel(takes map[id.AccountID]time.Duration, left map[id.AccountID]int) *model {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	return &model{
		shares: shares{used: map[share]time.Duration{}}, now: began, began: began, takes: takes, left: left,
	}
}

// round is one of the service, a second after the one before.
func (m *model) round() {
	m.now = m.now.Add(leasesEvery)
	held, still := false, []ports.EndingPreview{}
	for _, e := range m.ending {
		if m.now.Sub(e.Since) >= m.takes[e.AccountID] {
			continue
		}
		still, held = append(still, e), held || holdsUp(e, m.now)
	}
	m.ending = still
	var due []ports.DuePreview
	for account, left := range m.left {
		if left > 0 && !held {
			due = append(due, ports.DuePreview{ServerID: "s", AccountID: account, Preview: preview.Preview{EndAt: &m.began}})
		}
	}
	for _, one := range m.choose(m.now, m.ending, due) {
		m.left[one.AccountID]--
		m.ending = append(m.ending, ports.EndingPreview{ServerID: "s", AccountID: one.AccountID, Since: m.now})
	}
}

// An account whose previews take long gets as much time as another one, and no more: the others' previews wait for one of its
// own, at most, for every so many minutes of theirs.
func TestSlowPreviewsHoldUpOthersForAShare(t *testing.T) {
	const many = 100
	for what, slow := range map[string]time.Duration{"minutes": 4 * time.Minute, "an hour": time.Hour, "seconds": 10 * time.Second} {
		t.Run(what, func(t *testing.T) {
			m := newModel(map[id.AccountID]time.Duration{"slow": slow, "quick": time.Second},
				map[id.AccountID]int{"slow": many, "quick": many})
			for m.left["quick"] > 0 && m.now.Sub(m.began) < time.Hour {
				m.round()
			}
			// Each of the quick ones may take a round to be seen.
			if most := 2*2*many*time.Second + preview.LongEnd; m.now.Sub(m.began) > most {
				t.Errorf("the quick ones took %s, %d are left", m.now.Sub(m.began), m.left["quick"])
			}
			if gone := many - m.left["slow"]; gone == 0 {
				t.Error("the slow ones had no share")
			}
		})
	}
}

// Who comes late neither waits for what others have had before, nor has saved anything.
func TestWhoComesLate(t *testing.T) {
	m := newModel(map[id.AccountID]time.Duration{"early": time.Second, "late": time.Second},
		map[id.AccountID]int{"early": 200})
	for range 100 {
		m.round()
	}
	before := m.left["early"]
	m.left["late"] = 20
	for m.left["late"] > 0 {
		m.round()
	}
	if meanwhile := before - m.left["early"]; meanwhile < 15 || meanwhile > 25 {
		t.Errorf("beside 20 of another account's previews, %d were ended", meanwhile)
	}
	for m.left["early"] > 0 {
		m.round()
	}
	for range 2 { // nothing is left to do
		m.round()
	}
	if len(m.used) != 0 {
		t.Errorf("of what is over it remembers %v", m.used)
	}
}
