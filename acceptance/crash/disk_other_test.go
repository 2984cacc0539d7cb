//go:build unix && !linux

package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
)

func smallDisk(*testing.T) (func(*stack.Options), func(*testing.T), bool) { return nil, nil, false }
