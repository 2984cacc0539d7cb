package app

import (
	"crypto/rand"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/idempotency"
)

// KeyFlag is --idempotency-key of a command whose call takes one.
type KeyFlag struct {
	flag  *pflag.Flag
	given string
}

// Add adds the flag to a command.
func (k *KeyFlag) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.given, "idempotency-key", "",
		"repeat the request that was sent with this key; without it, one is made and printed")
	k.flag = cmd.Flags().Lookup("idempotency-key")
}

// Use is the key of a call. One that is made here is printed before anything is sent: with it, the command can be repeated
// whatever happens to the answer.
func (k *KeyFlag) Use(a *App) (apiclient.Option, error) {
	if _, err := a.api(); err != nil {
		return nil, err
	}
	if !k.flag.Changed { // An empty key was given by mistake, as by a script whose variable is not set.
		k.given = rand.Text()
		a.Note("idempotency key: %s (--idempotency-key repeats this)", k.given)
	}
	if _, err := idempotency.Parse(k.given); err != nil {
		return nil, Usage("--idempotency-key: %w", err)
	}
	return apiclient.IdempotencyKey(k.given), nil
}
