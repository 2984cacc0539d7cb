package wiring

import (
	"go.uber.org/fx"

	"github.com/pgherd/pgherd/adapters/postgres"
)

// NewNotifier listens for work that other processes commit, for as long as the host runs.
func NewNotifier(lc fx.Lifecycle, s Settings) (*postgres.Notifier, error) {
	n, err := postgres.NewNotifier(postgres.Config{URL: s.MetadataURL})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(n.Close))
	return n, nil
}
