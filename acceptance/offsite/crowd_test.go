package offsite

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// What one database takes does not grow with how many others there are, nor does what an archive takes of an idle server.
func TestCrowd(t *testing.T) {
	of := scale{databases: 5, megabytes: 1, long: time.Second}
	if text := os.Getenv("PGHERD_CROWD"); text != "" {
		of.databases = check.Must(strconv.Atoi(text))(t)
		of.measured, of.long = true, time.Minute
	}
	w := start(t, of)
	w.idle(t)
	w.smallBack(t)
	w.replayed(t)
}
