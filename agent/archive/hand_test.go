package archive

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestWhetherPostgreSQLStays(t *testing.T) {
	lines := func(pid int, status string) string {
		return strconv.Itoa(pid) + "\n/data\n1700000000\n5432\n/tmp\n*\n  123 456\n" + status
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"runs":         {lines(os.Getpid(), "ready   \n"), true},
		"starts":       {lines(os.Getpid(), "starting\n"), true},
		"is to end":    {lines(os.Getpid(), "stopping\n"), false},
		"is gone":      {lines(1<<30, "ready   \n"), false},
		"just begins":  {strconv.Itoa(os.Getpid()) + "\n/data\n", false},
		"no PID":       {"\n", false},
		"all of them":  {lines(0, "ready   \n"), false},
		"nothing":      {"", false},
		"negative PID": {lines(-1, "ready   \n"), false},
	} {
		dir := t.TempDir()
		check.NoError(t, os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(c.text), 0o600))
		if got := serverStays(dir); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if serverStays(t.TempDir()) {
		t.Error("there is none")
	}
}
