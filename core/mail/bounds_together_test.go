package mail

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// No account can use up what an address gets from all.
func TestBoundsOfOneAddress(t *testing.T) {
	if 4*MaxRecipient >= MaxTogether {
		t.Error("a few accounts can keep an address from being invited by others")
	}
	for together, ok := range map[int]bool{0: true, MaxTogether - 1: true, MaxTogether: false, MaxTogether + 1: false} {
		if err := (Recent{Together: together}).Admit(); (err == nil) != ok || err != nil && !fault.Has(err, fault.RateLimited) {
			t.Errorf("%d mails to an address: %v", together, err)
		}
	}
}
