// Package check has what the tests of every package share.
package check

import (
	"testing"
	"time"
)

// NoError ends the test where there is an error. About says what it is an error of, where that cannot be seen.
func NoError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(about, err)...)
	}
}

// Must is the value of a call that must not fail: check.Must(os.Open(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		NoError(t, err)
		return value
	}
}

// Patience is far above what anything takes that a test waits for, on a machine that has much else to do. Only a test that fails
// waits for so long.
const Patience = 2 * time.Minute

// Eventually waits until something holds. What is said where it does not hold in time. The longer that takes, as on a busy
// machine, the more seldom it looks: a look takes time, too.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(min(max(10*time.Millisecond, time.Since(began)/10), 100*time.Millisecond)) {
		if time.Since(began) > Patience {
			t.Fatal(what)
		}
	}
}
