package commons

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const million = 1_000_000

// someone makes a session of a customer; the process ID tells the sessions of a test apart.
func someone(pid int, account string, held int64, open time.Duration) session {
	return session{pid: pid, account: account, class: customer, held: held, open: open}
}

func of(c class, s session) session {
	s.class = c
	return s
}

// ended judges a look and returns the process IDs, sorted.
func ended(m *memory, s state) []int {
	if m.notifiers == nil {
		m.notifiers = map[string]bool{}
	}
	pids := []int{}
	for _, v := range m.judge(&s, Limits{}.orDefault()) {
		pids = append(pids, v.pid)
	}
	slices.Sort(pids)
	return pids
}

func TestWhoGoesForTransactionIDs(t *testing.T) {
	const burnt = 130_000 // within a second
	burner := suspect{session: someone(9, "mallory", 0, time.Minute), took: 123_500}
	writer := suspect{session: someone(8, "alice", 0, time.Second), took: 6_500}
	for what, c := range map[string]struct {
		s    state
		want []int
	}{
		"nobody keeps any": {state{taken: burnt, suspects: []suspect{burner, writer}}, nil},
		"a burner's own transaction": {state{
			taken: burnt, suspects: []suspect{burner, writer},
			sessions: []session{someone(1, "mallory", 51*million, 6*time.Minute), someone(2, "alice", 51*million, 6*time.Minute)},
		}, []int{1, 9}},
		"another's report beside a burner": {state{
			taken: burnt, suspects: []suspect{burner, writer},
			sessions: []session{someone(2, "alice", 51*million, 2*time.Hour)},
		}, []int{9}},
		"another's dump beside a burner": {state{
			taken: burnt, suspects: []suspect{burner}, sessions: []session{of(dump, someone(2, "alice", 300*million, time.Hour))},
		}, []int{9}},
		"an administrator beside a burner": {state{
			taken: burnt, suspects: []suspect{burner},
			sessions: []session{of(administrator, someone(2, "", 2000*million, time.Hour))},
		}, []int{9}},
		"a slot beside a burner": {state{taken: burnt, suspects: []suspect{burner}, slot: 51 * million}, []int{9}},
		"rows that are not frozen beside a burner": {state{
			taken: burnt, suspects: []suspect{burner}, oldest: 201 * million, forced: 200 * million,
		}, []int{9}},
		"a burst before": {state{sessions: []session{someone(2, "alice", 51*million, 6*time.Minute)}}, nil},
		"a forgotten transaction": {state{
			taken: 1000, sessions: []session{someone(1, "bob", 51*million, 20*time.Hour), someone(2, "alice", 49*million, 19*time.Hour)},
		}, []int{1}},
		"in the end everybody": {state{
			taken: burnt, suspects: []suspect{burner}, sessions: []session{
				someone(1, "alice", 201*million, time.Hour), of(copying, someone(2, "alice", 201*million, time.Hour)),
				of(dump, someone(3, "alice", 201*million, time.Hour)), of(dump, someone(4, "bob", 801*million, time.Hour)),
				of(administrator, someone(5, "", 801*million, time.Hour)),
			},
		}, []int{1, 2, 4, 9}},
		"a copy that burns": {state{
			taken: burnt, suspects: []suspect{{session: of(copying, someone(7, "mallory", 0, 0)), took: 130_000}}, slot: 51 * million,
		}, []int{7}},
		"an administrator who burns": {state{
			taken: burnt, suspects: []suspect{{session: of(administrator, someone(7, "alice", 0, 0)), took: 130_000}}, slot: 51 * million,
		}, nil},
		"many who take few": {state{taken: 4000, suspects: []suspect{writer, writer}, slot: 51 * million}, nil},
		"multixact IDs": {state{
			takenMultis: 5000, oldestMulti: 401 * million, forceMulti: 400 * million,
			suspects: []suspect{{session: someone(6, "mallory", 0, 0), multixact: 3}, writer},
			sessions: []session{someone(2, "alice", 0, 2*time.Hour)},
		}, []int{6}},
		"multixact IDs that nothing frees": {state{
			oldestMulti: 801 * million, forceMulti: 400 * million,
			sessions: []session{someone(2, "alice", 0, 2*time.Hour), someone(3, "bob", 0, 3*time.Hour)},
		}, []int{3}},
	} {
		c.s.elapsed, c.s.sampled = time.Second, time.Second
		if c.s.forced == 0 {
			c.s.forced = 200 * million
		}
		if c.s.forceMulti == 0 {
			c.s.forceMulti = 400 * million
		}
		if got := ended(new(memory), c.s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

func TestWhoGoesForNotifications(t *testing.T) {
	notifier := suspect{session: someone(9, "mallory", 0, 0), notifies: 3}
	open := []session{
		someone(1, "mallory", 0, time.Minute), someone(2, "mallory", 0, time.Millisecond), someone(3, "alice", 0, time.Hour),
		someone(4, "bob", 0, 2*time.Minute), of(dump, someone(5, "mallory", 0, 2*time.Hour)),
		of(administrator, someone(6, "", 0, 3*time.Hour)), of(copying, someone(7, "bob", 0, time.Minute)),
	}
	for what, c := range map[string]struct {
		queue   float64
		filling time.Duration
		want    []int
	}{
		"little":               {0.04, time.Minute, nil},
		"too much":             {0.05, time.Minute, []int{1}},
		"much":                 {0.25, time.Minute, []int{1, 9}},
		"very much":            {0.5, time.Minute, []int{1, 3, 9}},
		"all have begun since": {0.5, 2 * time.Hour, []int{1, 9}},
		"nearly full":          {0.75, 2 * time.Hour, []int{1, 3, 4, 7, 9}},
	} {
		s := state{queue: c.queue, filling: c.filling, sessions: open, suspects: []suspect{notifier}}
		if got := ended(new(memory), s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Who was seen to notify is known until the queue is empty.
func TestWhoNotifiedIsRemembered(t *testing.T) {
	l, now, m := Limits{}.orDefault(), time.Now(), new(memory)
	for i, c := range []struct {
		queue    float64
		suspects []suspect
		want     int
		sample   bool
	}{
		{0, nil, 0, false}, {0.02, nil, 0, false}, {0.03, []suspect{{session: someone(9, "mallory", 0, 0), notifies: 1}}, 0, true},
		{0.06, nil, 1, true}, {0.001, nil, 0, false}, {0.06, nil, 0, true},
	} {
		s := &state{queue: c.queue, suspects: c.suspects, sessions: []session{someone(1, "mallory", 0, time.Minute)}}
		sample := m.note(s, now.Add(time.Duration(i)*time.Second), l)
		if got := len(m.judge(s, l)); got != c.want || sample != c.sample {
			t.Errorf("look %d: %d go, samples %t", i, got, sample)
		}
	}
}

func TestWhoGoesForSharedCatalogs(t *testing.T) {
	writer := suspect{session: someone(9, "mallory", 0, 0), writes: 15}
	other := suspect{session: someone(8, "alice", 0, 0), writes: 5}
	open := []session{
		someone(1, "mallory", 1, time.Minute), someone(2, "alice", 1, time.Hour), of(dump, someone(3, "mallory", 1, time.Hour)),
	}
	m := new(memory)
	for i, c := range []struct {
		growth   int64
		suspects []suspect
		want     []int
	}{
		{80 << 20, []suspect{writer, other}, nil},        // mallory has 60 MiB, alice 20
		{8 << 20, []suspect{writer, other}, []int{1, 9}}, // 66 and 22
		{8 << 20, nil, nil},                              // nobody's
		{0, []suspect{writer, other}, nil},               // that was already there
		{1 << 20, []suspect{writer}, []int{1, 9}},        // at once
		{1 << 20, []suspect{{session: of(administrator, other.session), writes: 9}}, nil},
	} {
		s := state{elapsed: time.Second, growth: c.growth, suspects: c.suspects, sessions: open}
		if got := ended(m, s); !slices.Equal(got, c.want) {
			t.Errorf("look %d: %v, want %v", i, got, c.want)
		}
	}
	ended(m, state{elapsed: 10 * time.Hour})
	if len(m.debts) > 0 {
		t.Errorf("not forgotten: %v", m.debts)
	}
}

// Who takes most of the IDs is found by who has the newest, whether or not the counter has come round, and a transaction that
// has had its ID for long is not.
func TestTheNewestIDsShowWhoTakesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := rapid.Uint32().Draw(t, "next")
		all, first := make(map[int]*suspect), next
		before, total := &first, 0
		for range 20 {
			taken := rapid.IntRange(100, 9_000).Draw(t, "taken")
			next, total = next+uint32(taken), total+taken
			fresh := rapid.Int64Range(-3, 1).Draw(t, "fresh")
			signs := []sign{
				{pid: 1, age: int64(rapid.Int32Range(10_000, 1<<30).Draw(t, "age"))}, {pid: 2, age: fresh},
				{pid: 3, age: fresh + rapid.Int64Range(1, 90).Draw(t, "older")}, {pid: 4, age: noID},
			}
			for i := range signs {
				signs[i].next = int64(int32(next))
			}
			if before = count(all, signs, before); *before != next {
				t.Fatalf("the next ID is %d, not %d", *before, next)
			}
		}
		if all[2].took != total || all[1].took+all[3].took+all[4].took > 0 {
			t.Errorf("%v", all)
		}
	})
}

// Many accounts that take a tenth each burn too, and who is seen by chance does not.
func TestWhoBurns(t *testing.T) {
	m, l := new(memory), Limits{}.orDefault()
	s := &state{elapsed: time.Second, sampled: time.Second, taken: 130_000}
	for n := range 10 {
		s.suspects = append(s.suspects, suspect{session: someone(n, string(rune('a'+n)), 0, 0), took: 13_000})
	}
	for range 10 {
		m.burning(s, l)
	}
	s.suspects = append(s.suspects[1:], suspect{session: someone(99, "seen once", 0, 0), took: 13_000})
	burning := m.burning(s, l)
	for account, burns := range burning {
		if burns != (account != "seen once") {
			t.Errorf("%s burns: %t", account, burns)
		}
	}
	if len(burning) != 11 {
		t.Errorf("%v", burning)
	}
}

// Whatever a look shows: no administrator goes, nobody goes twice, and as long as all is below its bound nobody goes.
func TestNobodyGoesWithoutNeed(t *testing.T) {
	l := Limits{}.orDefault()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
		below := rapid.Bool().Draw(t, "below")
		most := func(bound, top int64) int64 {
			if below {
				return bound
			}
			return top
		}
		s := &state{
			elapsed: time.Second, sampled: time.Second, taken: uint32(number("taken", 200_000)),
			oldest: number("oldest", most(200*million, 2000*million)),
			forced: 200 * million, forceMulti: 400 * million, oldestMulti: number("multi", most(400*million, 2000*million)),
			queue: float64(number("queue", most(49, 1000))) / 1000, growth: number("growth", most(1<<20, 1<<30)),
			prepared: number("prepared", most(l.TransactionIDs, 1<<31)),
		}
		for pid := range rapid.IntRange(0, 6).Draw(t, "sessions") {
			x := of(class(rapid.IntRange(int(administrator), int(customer)).Draw(t, "class")), someone(pid,
				rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "account"), number("held", most(l.TransactionIDs, 1<<31)),
				time.Duration(number("open", int64(24*time.Hour)))))
			s.sessions = append(s.sessions, x)
			n := func(name string) int { return rapid.IntRange(0, 20).Draw(t, name) }
			s.suspects = append(s.suspects, suspect{session: x, took: 1000 * n("took"), notifies: n("notifies"), writes: n("writes")})
		}
		classes, seen := map[class]bool{}, map[int]bool{}
		for _, v := range (&memory{notifiers: map[string]bool{}}).judge(s, l) {
			if seen[v.pid] {
				t.Errorf("%d goes twice", v.pid)
			}
			classes[v.class], seen[v.pid] = true, true
		}
		if classes[administrator] || below && len(classes) > 0 {
			t.Errorf("%v go", slices.Collect(maps.Keys(classes)))
		}
	})
}
