// Package mailbox implements ports.Mailer for tests and scenarios: nothing leaves the process. It keeps every mail, and answers as
// configured.
package mailbox

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// Answer decides what becomes of the nth attempt to send to an address, counted from 1. The mail is kept where it returns nil. It
// may wait; the context says when the sender has given up.
type Answer func(ctx context.Context, n int) error

// Mailbox implements ports.Mailer. It is safe for concurrent use.
type Mailbox struct {
	mu      sync.Mutex
	answers map[string]Answer
	counts  map[string]int
	mails   []mail.Message
}

var _ ports.Mailer = (*Mailbox)(nil)

// New makes a mailbox that takes every mail.
func New() *Mailbox { return &Mailbox{answers: map[string]Answer{}, counts: map[string]int{}} }

// On sets the answers to mails to one address.
func (b *Mailbox) On(to string, a Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[to] = a
}

// Mails returns what was sent to an address, in the order of arrival; the empty address asks for everything.
func (b *Mailbox) Mails(to string) (list []mail.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.mails {
		if to == "" || m.To == to {
			list = append(list, m)
		}
	}
	return list
}

// Check implements ports.Mailer.
func (b *Mailbox) Check(to string) error { return mail.CheckRecipient(to) }

// Send implements ports.Mailer.
func (b *Mailbox) Send(ctx context.Context, m mail.Message) error {
	b.mu.Lock()
	b.counts[m.To]++
	n, answer := b.counts[m.To], b.answers[m.To]
	b.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, n); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mails = append(b.mails, m)
	return nil
}
