package floors

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// LanguageVerdict is a language that customers can use.
type LanguageVerdict struct {
	Language
	Accepted bool // by the operator
}

// Languages knows the trusted procedural languages besides PL/pgSQL. As with programs, one that does not pass when this agent
// looks for the first time ends the agent, and one that comes while it runs is only complained about.
type Languages struct {
	policy             Policy
	offered, installed AskLanguages
	log                *zap.Logger

	mu    sync.Mutex
	begun bool
	known []Language
}

// AskLanguages asks a server for its
type AskLanguages func(context.Context) ([]Language, error)

// NewLanguages returns languages that are found so: those that a server offers, and those that its databases have.
func NewLanguages(p Policy, offered, installed AskLanguages, log *zap.Logger) *Languages {
	return &Languages{policy: p, offered: offered, installed: installed, log: log}
}

// languageTime bounds a look at the server and the few databases that have a language.
const languageTime = 30 * time.Second

// Look returns a *Refusal, or an error where the server did not say what it offers. A database that does not answer
// holds nobody up: customers cannot install what is not offered.
func (w *Languages) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, languageTime)
	defer cancel()
	offered, err := w.offered(ctx)
	if err != nil {
		return err
	}
	installed, err := w.installed(ctx)
	if err != nil {
		w.log.Warn("not every database says which procedural languages it has", zap.Error(err))
	}
	return w.note(append(offered, installed...))
}

// note remembers the languages of the server, and logs those that are new.
func (w *Languages) note(found []Language) error {
	w.mu.Lock()
	begun, before := w.begun, w.known
	w.begun, w.known = true, found
	w.mu.Unlock()
	for _, f := range found {
		language := zap.Stringer("language", f)
		switch {
		case slices.Contains(before, f):
		case w.policy.Development, w.policy.Accepts(f.Name):
			w.log.Warn("a trusted procedural language is let pass", language, zap.Bool("accepted", w.policy.Accepts(f.Name)))
		case begun:
			w.log.Error("a trusted procedural language has come, in which sessions cannot be ended", language)
		}
	}
	if begun {
		return nil
	}
	return w.policy.AdmitLanguages(found)
}

// Watch looks again and again until ctx ends.
func (w *Languages) Watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(versionPause):
		}
		_ = w.Look(ctx) // That PostgreSQL does not answer is said by whoever needs it.
	}
}

// Report lists the languages that were seen at the last look.
func (w *Languages) Report() (all []LanguageVerdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.known {
		all = append(all, LanguageVerdict{f, w.policy.Accepts(f.Name)})
	}
	return all
}
