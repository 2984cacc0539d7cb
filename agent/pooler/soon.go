package pooler

import "time"

// PgBouncer is one thread: while it reads the files of thousands of databases, it serves nobody. So SyncSoon collects changes
// until none has come for QuietTime. Where they go on coming, as when leases end one after the other, only the first atOnce
// reloads are as quick as that; then there is one each SoonTime, or each lineTime for every line of the files where that is more,
// and each LateTime at least. A line takes PgBouncer some 10 µs (measured with 40,000), so clients wait for such reloads for a
// hundredth of the time.
const (
	QuietTime = 500 * time.Millisecond
	SoonTime  = 5 * time.Second
	LateTime  = time.Minute
	lineTime  = time.Millisecond
	atOnce    = 3
)

// collection is changes that wait for a reload together. Its owner has a lock for it.
type collection struct {
	lines  int         // of the files
	timer  *time.Timer // nil while there are no changes
	latest time.Time   // when their reload must have begun
	turn   time.Time   // before it, none is due but by latest: there have been as many as may be
}

// every is how often there is a reload in the long run, and the longest that a change waits for its own.
func (c *collection) every() time.Duration {
	return max(SoonTime, min(LateTime, time.Duration(c.lines)*lineTime))
}

// add adds a change. begin is called when the reload is due, which takes them all.
func (c *collection) add(begin func()) { c.addAfter(max(QuietTime, time.Until(c.turn)), begin) }

// addAfter is add with a pause until the reload is due if nothing else is added.
func (c *collection) addAfter(pause time.Duration, begin func()) {
	pause = min(pause, c.every())
	if c.timer == nil {
		c.latest = time.Now().Add(c.every())
		c.timer = time.AfterFunc(pause, begin)
		return
	}
	c.timer.Reset(min(pause, time.Until(c.latest)))
}

// take empties the collection, and reports whether there was anything in it.
func (c *collection) take() bool {
	if c.timer == nil {
		return false
	}
	c.timer.Stop()
	c.timer = nil
	if first := time.Now().Add((1 - atOnce) * c.every()); c.turn.Before(first) {
		c.turn = first
	}
	c.turn = c.turn.Add(c.every())
	return true
}
