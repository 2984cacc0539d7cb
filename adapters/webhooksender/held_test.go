package webhooksender

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/webhook"
)

// Nothing is sent while it could go to an own host, and that is no attempt of the receiver's; neither is a URL refused then.
func TestNothingIsSentWhileOwnHostsAreUnknown(t *testing.T) {
	known := false
	resolver := &names{answers: map[string][][]netip.Addr{receiverName + ".": {addresses("8.8.8.8")}}}
	s := newSender(t, Options{Resolver: resolver, Policy: webhook.Policy{OwnKnown: func() bool { return known }}})
	for _, url := range []string{"https://" + receiverName + "/", "https://8.8.8.8/"} {
		if o, err := s.Send(t.Context(), request(url)); !errors.Is(err, webhook.ErrOwnUnknown) {
			t.Errorf("%s: %+v, %v", url, o, err)
		}
		if _, err := s.Check(t.Context(), url); !errors.Is(err, webhook.ErrOwnUnknown) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if len(resolver.asked) != 0 {
		t.Errorf("looked up %v", resolver.asked)
	}
	known = true
	check.Must(s.Check(t.Context(), "https://"+receiverName+"/"))(t)
}
