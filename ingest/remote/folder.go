package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// Folder is a folder on a server.
type Folder struct {
	base    *url.URL // ends in a slash
	options Options
	client  *http.Client
	slots   chan struct{} // one for each request under way
}

// errProxy hides the text of the environment, which may hold a password.
var errProxy = errors.New("the proxy that the environment names (HTTPS_PROXY, HTTP_PROXY) is not a valid URL")

// Open makes a Folder of an endpoint, an http or https URL that ends in a slash. Nothing is sent yet.
func Open(endpoint string, o Options) (*Folder, error) {
	base, err := url.Parse(endpoint)
	if err != nil {
		return nil, errors.New("the endpoint is not a URL") // the parser's error repeats it
	}
	o = o.withDefaults()
	f := &Folder{base: base, options: o, slots: make(chan struct{}, o.Connections)}
	switch {
	case base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return nil, errors.New("the endpoint is not an http or https URL")
	case base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, fmt.Errorf("endpoint %s: has more than scheme, host and path", f.Name(""))
	case !strings.HasSuffix(base.Path, "/"):
		return nil, fmt.Errorf("endpoint %s: does not end in a slash", f.Name(""))
	case base.Scheme == "http" && !o.AllowInsecure && !thisMachine(base.Hostname()):
		return nil, fmt.Errorf("endpoint %s: is not encrypted: use https:, or allow insecure HTTP", f.Name(""))
	}
	f.client = &http.Client{
		CheckRedirect: f.redirect,
		Transport: &http.Transport{
			Proxy: func(r *http.Request) (*url.URL, error) {
				proxy, err := o.Proxy(r)
				if err != nil {
					return nil, errProxy
				}
				return proxy, nil
			},
			DialContext:            o.Dial,
			TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    o.ConnectTimeout,
			ResponseHeaderTimeout:  o.HeaderTimeout,
			MaxResponseHeaderBytes: maximumHeaderBytes,
			MaxIdleConnsPerHost:    o.Connections,
			IdleConnTimeout:        o.HeaderTimeout,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
		},
	}
	return f, nil
}

// thisMachine tells whether a host is the machine itself.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// redirect follows a few redirects, and none from an encrypted connection to an open one.
func (f *Folder) redirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maximumRedirects:
		return &redirectError{fmt.Sprintf("more than %d redirects", maximumRedirects)}
	case to.URL.Scheme != "https" && to.URL.Scheme != f.base.Scheme, via[len(via)-1].URL.Scheme == "https" && to.URL.Scheme != "https":
		return &redirectError{fmt.Sprintf("a redirect from %s to scheme %s is not followed", via[len(via)-1].URL.Scheme, quote(to.URL.Scheme))}
	case to.URL.User != nil:
		return &redirectError{"a redirect to a URL with credentials is not followed"}
	case to.URL.Scheme == "http" && !f.options.AllowInsecure && !thisMachine(to.URL.Hostname()):
		return &redirectError{"a redirect from this machine to another without encryption is not followed"}
	}
	return nil
}

// Name is how messages name a file of the folder, and with an empty name the folder: paths of
// endpoints often hold keys and are left out.
func (f *Folder) Name(file string) string {
	hidden := ""
	if path.Clean(f.base.Path) != "/" {
		hidden = "…/"
	}
	return f.base.Scheme + "://" + f.base.Host + "/" + hidden + file
}

// Close closes connections that are not in use.
func (f *Folder) Close() { f.client.CloseIdleConnections() }

func (f *Folder) url(file string) string { return f.base.JoinPath(url.PathEscape(file)).String() }
