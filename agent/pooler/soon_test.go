package pooler

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Leases of previews end one after the other for as long as it takes: PgBouncer reads its files once for some of them, and never
// later than it should. Of what is gone alone it hears at once.
func TestWhatGoesOnIsCollected(t *testing.T) {
	for _, c := range []struct {
		lines       int
		pace, every time.Duration
	}{
		{100, time.Second, SoonTime},
		{100, 3 * time.Second, SoonTime},
		{40_000, time.Second, 40 * time.Second},
		{1_000_000, time.Second, LateTime},
	} {
		synctest.Test(t, func(t *testing.T) { collectEnds(t, c.lines, c.pace, c.every) })
	}
}

func collectEnds(t *testing.T, lines int, pace, every time.Duration) {
	c := collection{lines: lines}
	var mu sync.Mutex
	var waiting []time.Time
	reloads := 0
	reload := func() {
		mu.Lock()
		defer mu.Unlock()
		if !c.take() {
			return // the timer went off as the one before was being served
		}
		if late := time.Since(waiting[0]) - every; late > 0 {
			t.Errorf("PgBouncer hears of it %s too late", late)
		}
		reloads, waiting = reloads+1, nil
	}
	gone := func() {
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, time.Now())
		c.add(reload)
	}
	const ends = 1000
	for range ends {
		gone()
		time.Sleep(pace)
	}
	time.Sleep(every)
	synctest.Wait()
	t.Logf("%d lines: %d reloads for %d databases that are gone, one each %s", lines, reloads, ends, pace)
	if most := atOnce + int(ends*pace/every) + 1; reloads > most || len(waiting) > 0 {
		t.Errorf("more than %d reloads, or PgBouncer has not heard of %d", most, len(waiting))
	}
	time.Sleep(atOnce * every)
	for n := range atOnce {
		reloads = 0
		gone()
		time.Sleep(QuietTime + time.Millisecond)
		if synctest.Wait(); reloads != 1 {
			t.Errorf("PgBouncer has not heard at once of what is gone alone, the %dth", n+1)
		}
	}
}
