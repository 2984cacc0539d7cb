package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/database"
)

func BenchmarkCreate(b *testing.B) {
	s := realStack(b)
	for b.Loop() {
		s.done(b, want(database.Managed).create())
	}
}
