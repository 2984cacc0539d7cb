package conformance_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/adapters/passwords"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
)

func TestPasswords(t *testing.T) {
	t.Run("argon2id", func(t *testing.T) { conformance.Passwords(t, passwords.Hasher{}) })
	t.Run("fake", func(t *testing.T) { conformance.Passwords(t, fakepasswords.Hasher{}) })
}
