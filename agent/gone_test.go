package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
)

// poolerEntries reads the entries that PgBouncer's main file names.
func (s *stack) poolerEntries(t testing.TB) (text string) {
	t.Helper()
	check.Eventually(t, "PgBouncer's files are replaced all the time", func() bool {
		main := check.Must(os.ReadFile(pooler.ConfigFile(s.config.Pooler.Dir)))(t)
		_, path, _ := strings.Cut(string(main), "%include ")
		path, _, _ = strings.Cut(path, "\n")
		entries, err := os.ReadFile(path)
		text = string(entries)
		return err == nil
	})
	return text
}
