package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// refusesLanguage fails the test unless an agent that accepts no language ends with a refusal that says where one is.
func refusesLanguage(t testing.TB, s *agenttest.Stack, where string) {
	t.Helper()
	s.Config.Languages = floors.Policy{Accept: []string{"mad", "made_extension"}}
	before := s.One(t, "SELECT coalesce(max(instance), '') FROM ledger.agent")
	a, _, ended := s.Run(t.Context(), t)
	if err := ends(t, ended); !floors.Is(err) || !strings.Contains(err.Error(), where) {
		t.Errorf("it ended with %v", err)
	}
	if a.InCharge() || s.One(t, "SELECT coalesce(max(instance), '') FROM ledger.agent") != before {
		t.Error("it took charge")
	}
}

// TestAgentRefusesALanguage has one that a customer could install, then one that a customer has installed.
func TestAgentRefusesALanguage(t *testing.T) {
	t.Parallel()
	pg, extensions := clustertest.NewPrivate(t)
	s := agenttest.New(t, pg, t.TempDir())
	clustertest.OfferLanguage(t, extensions, "made_extension", "made")
	refusesLanguage(t, s, "made (offered by the extension made_extension)")

	s.Config.Languages = floors.Policy{Accept: []string{"made", "other"}}
	ctx, cancel := context.WithCancel(t.Context())
	a, log, ended := s.Started(ctx, t)
	for _, name := range s.Config.Languages.Accept {
		said := log.FilterMessage("a trusted procedural language would be accepted (--accept-languages)")
		if said.FilterField(zap.String("language", name)).Len() != 1 {
			t.Errorf("%s is not named: %+v", name, log.All())
		}
	}
	want := floors.LanguageVerdict{Language: floors.Language{Name: "made", Extension: "made_extension"}, Accepted: true}
	if got := a.Languages(); !slices.Equal(got, []floors.LanguageVerdict{want}) {
		t.Errorf("it shows %+v", got)
	}

	s.StartBouncer(ctx, t)
	w := s.Made(t, database.Managed)
	check.Must(s.Owner(t, w).Exec("CREATE EXTENSION made_extension"))(t)
	cancel()
	check.NoError(t, ends(t, ended))
	check.NoError(t, os.Remove(filepath.Join(extensions, "made_extension.control")))
	refusesLanguage(t, s, "made (installed in the database "+w.Name+")")
}

// TestAgentThatCannotAskForLanguagesSaysWhatToDo has a server without the functions that agent init makes.
func TestAgentThatCannotAskForLanguagesSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	check.Must(s.Super.Exec("DROP SCHEMA server CASCADE"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, log, _ := s.Run(ctx, t)
	check.Eventually(t, "the agent does not say that init has to be run again", func() bool {
		return slices.ContainsFunc(log.FilterMessage("looking for procedural languages").All(), func(e observer.LoggedEntry) bool {
			return strings.Contains(e.ContextMap()["error"].(string), "run pgherd agent init")
		})
	})
	if a.InCharge() {
		t.Error("it took charge")
	}
}
