package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/languages"
	"github.com/pgherd/pgherd/agent/ledger"
)

// Language is a trusted procedural language that customers can use.
type Language struct {
	languages.Found
	Accepted bool // by the operator
}

// languageWatch knows the trusted procedural languages besides PL/pgSQL. As with programs, one that does not pass when this agent
// looks for the first time ends the agent, and one that comes while it runs is only complained about.
type languageWatch struct {
	policy   languages.Policy
	postgres ledger.Server
	log      *zap.Logger

	mu    sync.Mutex
	begun bool
	known []languages.Found
}

func newLanguageWatch(c Config, s ledger.Server, log *zap.Logger) *languageWatch {
	return &languageWatch{policy: c.Languages, postgres: s, log: log}
}

// languageTime bounds a look at the server and the few databases that have a language.
const languageTime = 30 * time.Second

// look returns a *languages.Refusal, or an error where the server did not say what it offers. A database that does not answer
// holds nobody up: customers cannot install what is not offered.
func (w *languageWatch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, languageTime)
	defer cancel()
	offered, err := w.postgres.OfferedLanguages(ctx)
	if err != nil {
		return err
	}
	installed, err := w.postgres.InstalledLanguages(ctx)
	if err != nil {
		w.log.Warn("not every database says which procedural languages it has", zap.Error(err))
	}
	return w.note(append(offered, installed...))
}

// note remembers the languages of the server, and logs those that are new.
func (w *languageWatch) note(found []languages.Found) error {
	w.mu.Lock()
	begun, before := w.begun, w.known
	w.begun, w.known = true, found
	w.mu.Unlock()
	for _, f := range found {
		language := zap.Stringer("language", f)
		switch {
		case slices.Contains(before, f):
		case w.policy.Passes(f):
			w.log.Warn("a trusted procedural language is let pass", language, zap.Bool("accepted", w.policy.Accepts(f)))
		case begun:
			w.log.Error("a trusted procedural language has come, in which sessions cannot be ended", language)
		}
	}
	if begun {
		return nil
	}
	return w.policy.Admit(found)
}

// watch looks again and again until ctx ends.
func (w *languageWatch) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(versionPause):
		}
		_ = w.look(ctx) // That PostgreSQL does not answer is said by whoever needs it.
	}
}

func (w *languageWatch) report() (all []Language) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.known {
		all = append(all, Language{f, w.policy.Accepts(f)})
	}
	return all
}

// Languages lists the trusted procedural languages besides PL/pgSQL that the agent saw when it last looked.
func (a *Agent) Languages() []Language { return a.languages.report() }

// checkLanguages waits until PostgreSQL says what it offers, and returns a *languages.Refusal before a predecessor loses charge.
func (a *Agent) checkLanguages(ctx context.Context) error {
	for _, name := range a.config.Languages.Accept {
		a.log.Warn("a trusted procedural language would be accepted (--accept-languages)", zap.String("language", name))
	}
	return a.judged(ctx, "looking for procedural languages", a.languages.look, languages.Is)
}
