package spec

import (
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// ChangeExtension installs or upgrades an extension.
func (c Client) ChangeExtension(
	of id.DatabaseID, name extension.Name, kind extension.Change, key string,
) (wire.ExtensionOperation, error) {
	return c.Extensions.Change(ctx, of, wire.ChangeExtension{Extension: name, Kind: kind}, apiclient.IdempotencyKey(key))
}

// Extender is an owner whose database is on a server with qualified extensions.
func (s *Stage) Extender() (*Customer, Created) {
	s.Helper()
	s.OK(s.Operator.QualifyExtensions())
	return s.Owner()
}

// SeesExtensions returns the catalog of a database.
func (c *Customer) SeesExtensions(of Created) []wire.Extension {
	c.stage.Helper()
	return must(c.Extensions.List(ctx, of.ID))(c.stage)
}

// SeesExtension returns one entry of it.
func (c *Customer) SeesExtension(of Created, name extension.Name) wire.Extension {
	c.stage.Helper()
	for _, e := range c.SeesExtensions(of) {
		if e.Name == name {
			return e
		}
	}
	c.stage.Fatalf("the catalog has no %s", name)
	return wire.Extension{}
}

// Installs installs an extension.
func (c *Customer) Installs(of Created, name extension.Name) wire.ExtensionOperation {
	c.stage.Helper()
	done := c.Extends(of, name, "install", c.stage.Name("key"))
	c.stage.That(done.Status == "succeeded", "the installation of %s is %s: %+v", name, done.Status, done.Error)
	return done
}

// Extends asks for a change of an extension, and waits for its end, however it ends.
func (c *Customer) Extends(
	of Created, name extension.Name, kind extension.Change, key string,
) wire.ExtensionOperation {
	c.stage.Helper()
	return c.FollowsExtension(of, must(c.ChangeExtension(of.ID, name, kind, key))(c.stage))
}

// FollowsExtension waits for the end of an operation by reading it.
func (c *Customer) FollowsExtension(of Created, o wire.ExtensionOperation) wire.ExtensionOperation {
	c.stage.Helper()
	key := o.IdempotencyKey
	c.stage.Eventually("operation "+string(o.ID)+" is final", func() (final bool) {
		o = c.ReadsExtension(of, o.ID)
		return o.Status.Final()
	})
	c.stage.That(o.IdempotencyKey == key && len(key) == 64, "its key is %s; it was %s", o.IdempotencyKey, key)
	return o
}

// ReadsExtension returns an operation on an extension.
func (c *Customer) ReadsExtension(of Created, op id.OperationID) wire.ExtensionOperation {
	c.stage.Helper()
	return must(c.Extensions.GetOperation(ctx, of.ID, op))(c.stage)
}

// unavailable expects that a change is refused, and leaves no operation.
func (s *Stage) unavailable(c *Customer, of Created, name extension.Name, kind extension.Change) {
	s.Helper()
	before := len(c.ListsOperations(of.ID))
	_, err := c.ChangeExtension(of.ID, name, kind, s.Name("key"))
	s.Refused(err, "EXTENSION_MUTATION_UNAVAILABLE")
	s.That(len(c.ListsOperations(of.ID)) == before, "it left an operation")
}
