// Package agent holds the suite of ports.Agent, which the real agent and the fake pass.
package agent

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Stand is an agent and a view of the server on which it works.
type Stand struct {
	Agent  ports.Agent
	Server ServerView

	// roles are the additional roles that a case is about; where they are none, managed ones.
	roles role.Model
}

// ServerView sees the effects of an agent's work as customers and operators see them.
type ServerView interface {
	RoleView
	// Databases returns the names of all databases for customers.
	Databases() []string
	// Logins returns the names of all logins for customers.
	Logins() []string
	// LogIn connects through the pooler, from the address From, as a customer: database is "<name>" or
	// "<name>.transaction". Every refusal is an error.
	LogIn(database, username, password string) (CustomerSession, error)
	// From is where LogIn comes from.
	From() netip.Addr
	// AccountOf returns whose a database is, as the agent was told; empty where it was not.
	AccountOf(db id.DatabaseID) id.AccountID
	// AddForeign makes a database of that name that is not the platform's. The suite leaves it behind.
	AddForeign(t *testing.T, name string)
}

// CustomerSession is an open connection of a customer.
type CustomerSession interface {
	Alive() bool
	Close()
}

// Agent is the suite of ports.Agent, of which a sample has one in several cases. newStand may return the same server each time:
// every case makes databases of its own under random names, and leaves them behind.
func Agent(t *testing.T, several int, newStand func(t *testing.T) Stand) {
	cases := maps.Clone(overlayCases)
	maps.Copy(cases, restoreCases)
	maps.Copy(cases, cloneCases)
	maps.Copy(cases, uploadCases)
	maps.Copy(cases, roleCases)
	maps.Copy(cases, settingsCases)
	maps.Copy(cases, extensionCases)
	maps.Copy(cases, inventoryCases)
	maps.Copy(cases, deletionCases)
	maps.Copy(cases, heardCases)
	maps.Copy(cases, snapshotCases)
	maps.Copy(cases, map[string]func(t *testing.T, s Stand){
		"archive keys": ArchiveKeys,
		"connections":  connectionsAreKnown,

		"ensure makes a managed database":         ensureManaged,
		"ensure makes a single-login database":    ensureSingleLogin,
		"ensure again is the same":                ensureAgain,
		"ensure by another operation":             ensureByAnother,
		"ensure at once makes one":                ensureAtOnce,
		"ensure keeps databases apart":            ensureApart,
		"ensure with another payload is refused":  ensureConflict,
		"ensure of a lower epoch is fenced":       ensureFenced,
		"ensure does not adopt a foreign name":    ensureForeignName,
		"ensure does not take another's name":     ensureTakenName,
		"ensure without a proof leaves no orphan": ensureUnproven,

		"close before the first command":      closeUnseen,
		"close keeps a complete database":     closeCompleteDatabase,
		"access opens and closes":             accessOpensAndCloses,
		"access restarts":                     accessRestarts,
		"access of a lower generation":        accessStale,
		"access with another payload":         accessConflict,
		"access of no database":               accessOfNothing,
		"access done before":                  accessDoneBefore,
		"generations begun and not done":      generationsOfNothing,
		"allowlist admits and ends":           allowlistAdmits,
		"allowlist of a lower generation":     allowlistStale,
		"allowlist again in another order":    allowlistAgain,
		"allowlist of no database":            allowlistOfNothing,
		"accounts are kept":                   accountsKept,
		"accounts of no database":             accountsOfNothing,
		"size":                                sizeOfDatabase,
		"sizes that have changed":             sizesOfDatabases,
		"use of databases":                    useOfDatabases,
		"statements are counted":              statementsCounted,
		"statements of no database":           statementsOfNothing,
		"backup is made, verified and opened": backupVerified,
		"backup without verification":         backupUnverified,
		"backup larger than it may be":        backupBounded,
		"backup again is the same":            backupAgain,
		"backup with another payload":         backupConflict,
		"backup of no database":               backupOfNothing,
		"backup closed on its way":            backupClosed,
		"backup complete cannot be closed":    backupComplete,
		"backup deleted":                      backupDeleted,
		"backup of another database":          backupOfAnother,
		"backup opened from a byte on":        backupFromAByteOn,
		"backup read again":                   backupReadAgain,
	})
	for name, test := range heritageCases {
		cases[name] = inFolder(test)
	}
	withLegacy(cases)
	for _, name := range sample.OneIn(t, several, slices.Sorted(maps.Keys(cases))) {
		t.Run(name, func(t *testing.T) { insisting(t, newStand(t), cases[name]) })
	}
}

func connectionsAreKnown(t *testing.T, s Stand) {
	known, err := ports.Ask(bounded(t), s.Agent, command.AskCapabilities{})
	noError(t, err)
	if known.Connections < 1 {
		t.Errorf("the server has %d connections for databases", known.Connections)
	}
}
