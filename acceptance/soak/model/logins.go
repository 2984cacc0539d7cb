package model

import (
	"slices"
	"sync"
)

// Login is what is known of the passwords of one login.
type Login struct {
	mu      sync.Mutex
	current []string // one of these is in force
	changed bool     // it may be one that nobody has been told
	refused []string // these are not, ever again
	closed  bool     // none is
}

// Told takes that a password was shown as the one in force.
func (l *Login) Told(password string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse(password)
	l.current, l.changed, l.closed = []string{password}, false, false
}

// Changing takes that a change was asked for whose outcome is not known: what is in force may be refused, and another password
// be.
func (l *Login) Changing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = true
}

// Changed takes that a change has ended: what was in force is refused from now on. The new password is not known yet.
func (l *Login) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse("")
	l.changed = true
}

// Close takes that the login is no more, or lets nobody in for good.
func (l *Login) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse("")
	l.closed = true
}

// refuse has every current password but one be refused.
func (l *Login) refuse(but string) {
	for _, p := range l.current {
		if p != but && !slices.Contains(l.refused, p) {
			l.refused = append(l.refused, p)
		}
	}
	l.current = slices.DeleteFunc(l.current, func(p string) bool { return p != but })
}

// Known is the password that must work; empty where it is not known.
func (l *Login) Known() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed || l.closed || len(l.current) != 1 {
		return ""
	}
	return l.current[0]
}

// May reports whether a password can be the one in force.
func (l *Login) May(password string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || slices.Contains(l.refused, password) {
		return false
	}
	return l.changed || len(l.current) == 0 || slices.Contains(l.current, password)
}

// Refused are the passwords that must be refused.
func (l *Login) Refused() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refused)
}
