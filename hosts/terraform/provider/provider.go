// Package provider keeps databases of a pgherd, and what belongs to them, as Terraform describes them.
package provider

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/version"
)

// Address is where Terraform knows the provider from.
const Address = "registry.terraform.io/pgherd/pgherd"

// patience is how long a call is repeated while the API says that it is busy, or in maintenance.
const patience = 5 * time.Minute

// New makes the provider, as its schemas are asked for; see NewServer.
func New() provider.Provider { return pgherd{new(held)} }

type pgherd struct{ held *held }

type settings struct {
	URL    types.String `tfsdk:"url"`
	Key    types.String `tfsdk:"key"`
	CAFile types.String `tfsdk:"ca_file"`
}

func (pgherd) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "pgherd", version.Version()
}

func (pgherd) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Databases of a pgherd, a managed PostgreSQL service.",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Address of the service, as in `https://pgherd.example.com`. `SVC_BASE_URL` without it.",
			},
			"key": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "API key. `SVC_API_KEY` without it, which keeps it out of files.",
			},
			"ca_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "PEM file of certificates to trust beside those of the system. `SVC_CA_FILE` without it.",
			},
		},
	}
}

func (p pgherd) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var given settings
	if resp.Diagnostics.Append(req.Config.Get(ctx, &given)...); resp.Diagnostics.HasError() {
		return
	}
	for name, text := range map[string]types.String{"url": given.URL, "key": given.Key, "ca_file": given.CAFile} {
		if text.IsUnknown() {
			resp.Diagnostics.AddAttributeError(path.Root(name), "Not known yet",
				"It depends on what is made by the same plan. Make that first, or give it by the environment.")
			return
		}
	}
	api, err := given.client()
	if err != nil {
		resp.Diagnostics.AddError("The service cannot be called", said(err))
		return
	}
	s := &service{Client: api, held: p.held, turns: map[id.DatabaseID]chan struct{}{}}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = s, s, s
}

func (s settings) client() (*apiclient.Client, error) {
	url, key := cmp.Or(s.URL.ValueString(), os.Getenv("SVC_BASE_URL")), cmp.Or(s.Key.ValueString(), os.Getenv("SVC_API_KEY"))
	if url == "" {
		return nil, errors.New("give url in the provider's block, or SVC_BASE_URL")
	}
	if key == "" {
		return nil, errors.New("give SVC_API_KEY, or key in the provider's block")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	if file := cmp.Or(s.CAFile.ValueString(), os.Getenv("SVC_CA_FILE")); file != "" {
		roots, err := trusted(file)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return apiclient.New(apiclient.Config{
		URL: url, Key: key, UserAgent: version.Product("terraform-provider-pgherd"), Patience: patience,
		HTTP: &http.Client{Transport: transport, CheckRedirect: notFollowed},
	})
}

// notFollowed keeps a redirect from being followed: the key belongs to the address that it was given for.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func trusted(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(file + " has no certificate in PEM")
	}
	return roots, nil
}

func (pgherd) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		made(database), made(role), made(member), made(webhook), made(allowlistEntry), made(extension), made(queryTimeouts),
		made(backupPolicy), made(ciTrust),
	}
}

func (pgherd) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		looked(databaseSource), looked(roleSource), looked(memberSource), looked(webhookSource), looked(allowlistSource),
		looked(extensionSource), looked(queryTimeoutsSource), looked(backupPolicySource), looked(backupsSource),
		looked(namespaceSource), looked(trustsSource),
	}
}

func (pgherd) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{revealing(rolePassword), revealing(loginPassword)}
}
