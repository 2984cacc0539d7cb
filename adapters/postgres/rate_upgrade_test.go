package postgres_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// oldTake is how a host of the version before leases took one request out of a bucket.
func oldTake(t *testing.T) string {
	t.Helper()
	text := check.Must(os.ReadFile("testdata/statements/00003_ee6b413.json"))(t)
	var recorded map[string][][]any
	check.NoError(t, json.Unmarshal(text, &recorded))
	for statement := range recorded {
		if strings.HasPrefix(strings.TrimSpace(statement), "INSERT INTO rate_buckets") {
			return statement
		}
	}
	t.Fatal("it is not among the recorded statements")
	return ""
}

// TestRateLimitBesideHostsOfTheVersionBefore has hosts of both versions use up one bucket in one moment, while the new ones give
// back what they have left: together they let in the limit.
func TestRateLimitBesideHostsOfTheVersionBefore(t *testing.T) {
	db := migrated(t)
	credential, _ := populate(t, db, 1)
	store, old, take := open(t, db), db.Open(t), oldTake(t)
	limit, now, let := ratelimit.Limit{Count: 240, Period: time.Minute}, time.Now().Truncate(time.Microsecond), 0
	takeOld := func() (taken bool) {
		t.Helper()
		var tat int64
		bucket := "key/" + string(credential.ID) + "/read"
		row := old.QueryRow(take, bucket, now.UnixMicro(), limit.Interval().Microseconds(), limit.Period.Microseconds())
		check.NoError(t, row.Scan(&tat, &taken))
		return taken
	}
	var hosts [2]ratelimit.Lease
	request := func(host *ratelimit.Lease) bool {
		t.Helper()
		d, ok := host.Take(limit, now)
		if !ok {
			_, grant, err := store.Lease(t.Context(), ports.LeaseRequest{
				Credential: credential, Class: ratelimit.Read, Limit: limit, Ask: host.Ask(limit, 10), Now: now,
			})
			check.NoError(t, err)
			*host, d = ratelimit.Begin(limit, grant, now)
		}
		return d.Allowed
	}
	giveBack := func(host *ratelimit.Lease) {
		t.Helper()
		rest := ports.Rest{Key: credential.ID, Class: ratelimit.Read, Limit: limit, Stretch: host.Rest}
		check.NoError(t, store.Return(t.Context(), []ports.Rest{rest}, now))
		*host = ratelimit.Lease{}
	}
	for step := range 3 * limit.Count {
		host := &hosts[step%2]
		if step%3 == 0 && takeOld() || step%3 != 0 && request(host) {
			let++
		}
		if step%7 == 0 {
			giveBack(host)
		}
	}
	if let != limit.Count {
		t.Errorf("%d were let in, the limit is %d", let, limit.Count)
	}
}
