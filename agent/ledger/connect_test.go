package ledger

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What is set for a customer's database does not reach the agent.
func TestAgentIsUndisturbedByADatabasesSettings(t *testing.T) {
	d := clustertest.NewDatabase(t)
	for _, setting := range []string{"default_transaction_read_only = on", "statement_timeout = '50ms'", "lock_timeout = 1"} {
		clustertest.Exec(t, d.Cluster.URL("postgres"), fmt.Sprintf("ALTER DATABASE %q SET %s", d.Name, setting))
	}
	const password = "of the agent"
	admin := d.Cluster.URL("postgres")
	clustertest.Exec(t, admin, "CREATE ROLE "+setup.AgentLogin+" SUPERUSER LOGIN PASSWORD "+pg.Quote(password))
	defer clustertest.Exec(t, admin, "DROP ROLE "+setup.AgentLogin)
	server := Server{Host: d.Cluster.Host(), Port: d.Cluster.Port(), Password: password}
	check.NoError(t, server.Once(t.Context(), d.Name, "CREATE TABLE public.made (); DROP TABLE public.made; SELECT pg_sleep(0.2)"))
}
