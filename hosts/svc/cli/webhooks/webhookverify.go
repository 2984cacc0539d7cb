package webhooks

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
	"github.com/pgherd/pgherd/hosts/svc/delivery"
)

// verification is what "webhooks verify" is told of a delivery.
type verification struct {
	signature, timestamp, secretFile string
	tolerance                        time.Duration
}

func webhooksVerify(a *app.App) *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the signature of a delivery", Args: cobra.NoArgs,
		Long: `Read the body of a delivery from standard input, byte by byte as it was received, and check its signature.
Nothing is sent.

Without --signature and --timestamp, standard input is the whole HTTP message: its header fields, an empty line and the body. The
signing secret stands in the file of --secret-file, or else in the variable SVC_WEBHOOK_SECRET. The exit status is 0 if the
signature is right and not too old, and 1 if not.`,
		Example: `  svc webhooks verify --secret-file secret.txt < request.http
  svc webhooks verify --timestamp 1767605400 --signature v1=88ff...d291ad < body.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("signature") != cmd.Flags().Changed("timestamp") {
				return app.Usage("--signature and --timestamp need each other: both are header fields of the delivery")
			}
			if v.tolerance < 0 {
				return app.Usage("--tolerance must be 0 or more")
			}
			secret, err := v.secret()
			if err != nil {
				return err
			}
			d, err := v.read(a, cmd.Flags().Changed("signature"))
			if err != nil {
				return err
			}
			if err := d.Check(secret, time.Now(), v.tolerance); err != nil {
				return err
			}
			return a.Say(map[string]bool{"valid": true}, "The signature is right.")
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.signature, "signature", "", "the value of Service-Signature")
	f.StringVar(&v.timestamp, "timestamp", "", "the value of Service-Timestamp")
	f.StringVar(&v.secretFile, "secret-file", "", "the file that holds the signing secret")
	f.DurationVar(&v.tolerance, "tolerance", 5*time.Minute, "how old the signature may be; 0 for any age")
	return cmd
}

// secret is the signing secret, from where it stands in no process list.
func (v verification) secret() (string, error) {
	text := os.Getenv("SVC_WEBHOOK_SECRET")
	if v.secretFile != "" {
		content, err := os.ReadFile(v.secretFile)
		if err != nil {
			return "", app.Usage("--secret-file: %w", err)
		}
		text = string(content)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", app.Usage("the signing secret is needed: in the file of --secret-file, or in SVC_WEBHOOK_SECRET")
	case !strings.HasPrefix(text, webhook.SecretPrefix):
		return "", app.Usage("the signing secret begins with %s, and what was given does not", webhook.SecretPrefix)
	}
	return text, nil
}

// read reads the delivery from standard input: its body, or all of it.
func (v verification) read(a *app.App, bodyOnly bool) (delivery.Delivery, error) {
	if f, is := a.In.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		return delivery.Delivery{}, app.Usage("a delivery is needed on standard input, as in: svc webhooks verify < request.http")
	}
	text, err := a.UntilInterrupted(func() (string, error) {
		text, err := delivery.Read(a.In)
		return string(text), err
	})
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("the delivery cannot be read: %w", err)
	}
	if bodyOnly {
		return delivery.Delivery{Timestamp: v.timestamp, Signature: v.signature, Body: []byte(text)}, nil
	}
	d, err := delivery.Parse([]byte(text))
	if err != nil {
		return d, fmt.Errorf("the delivery is no HTTP message: %w", err)
	}
	return d, nil
}
