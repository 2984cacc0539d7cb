package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Identities is the suite of ports.Identities.
func Identities(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an identity comes back as it was stored", identityComesBack},
		{"a subject is one person's, and a person one subject's of an issuer", identitiesAreUnique},
	})
}

const firstIssuer, secondIssuer = "https://one.example.org", "https://two.example.org"

func identity(of id.UserID, at, subject string, minute int) person.Identity {
	return person.Identity{Issuer: at, Subject: subject, UserID: of, CreatedAt: minutes(minute)}
}

func addIdentity(i person.Identity) transaction {
	return writing(ports.Tx.Identities, ports.Identities.Add, i)
}

func identityComesBack(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	second, first := identity(w.user.ID, firstIssuer, "a b|C", 2), identity(w.user.ID, secondIssuer, "a b|C", 1)
	theirs := identity(bob.ID, firstIssuer, "a b|c", 1)
	w.update(inOrder(addIdentity(second), addIdentity(first), addIdentity(theirs)))
	w.equal("the list", read(w, ports.Tx.Identities, ports.Identities.Of, w.user.ID), []person.Identity{first, second})
	w.equal("by its subject", read2(w, ports.Tx.Identities, ports.Identities.BySubject, firstIssuer, "a b|c"), theirs)
	for _, of := range [][2]string{{secondIssuer, "a b|c"}, {firstIssuer, "A B|C"}, {firstIssuer + "/", "a b|c"}} {
		w.missing("another subject", reading2(ports.Tx.Identities, ports.Identities.BySubject, of[0], of[1]))
	}
	w.update(writing(ports.Tx.Identities, ports.Identities.Remove, w.user.ID))
	w.equal("the list after its removal", len(read(w, ports.Tx.Identities, ports.Identities.Of, w.user.ID)), 0)
	w.equal("another person's", read2(w, ports.Tx.Identities, ports.Identities.BySubject, firstIssuer, "a b|c"), theirs)
	w.unknown("removing it again", writing(ports.Tx.Identities, ports.Identities.Remove, w.user.ID))
	w.unknown("one of nobody", addIdentity(identity(newID[id.UserID](), firstIssuer, "d", 1)))
}

func identitiesAreUnique(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	w.update(addIdentity(identity(w.user.ID, firstIssuer, "a", 1)))
	w.refused("the same subject again", invalid("subject"), addIdentity(identity(bob.ID, firstIssuer, "a", 2)))
	w.refused("another subject of the same person", invalid("subject"), addIdentity(identity(w.user.ID, firstIssuer, "b", 2)))
}
