package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
)

//go:embed leani.toml.tmpl
var starterTemplate string

// initFlags are what init fills into the starter settings.
type initFlags struct {
	dataDir   string
	era       string
	chainName string
	chainID   uint64
	genesis   string
	rpcBind   string
	remote    bool
}

func newInit(a *app) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented settings file",
		Long: `Write a commented settings file for a node that keeps raw history from era files.

The file is the one --config names. An existing file is never overwritten. Paths of flags start at
the working directory; paths inside the file start at the file. When the era folder is there, the
commands that fill what it holds are printed.`,
		Example: `  leani init --era /srv/era/mainnet
  leani --config lab.toml init --era era --chain-name lab --chain-id 424242 --genesis genesis.json.gz`,
		Args: noArguments,
		RunE: action(func(*cobra.Command, []string) error { return initialise(a, f) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dataDir, "data-dir", "", "data `directory` (default: data beside the file)")
	flags.StringVar(&f.era, "era", "", "`directory` of the era files (default: era beside the file)")
	flags.StringVar(&f.chainName, "chain-name", "mainnet", "`name` of the chain, which era file names start with")
	f.chainID = chain.MainnetChainID
	flags.Var((*chainNumber)(&f.chainID), "chain-id", "`id` of the chain (EIP-155)")
	flags.StringVar(&f.genesis, "genesis", "", "genesis.json `file` of a chain other than Mainnet; .gz is fine")
	flags.StringVar(&f.rpcBind, "rpc-bind", "127.0.0.1:8545", "`address` of JSON-RPC over HTTP")
	flags.BoolVar(&f.remote, "allow-remote", false, "let other machines reach JSON-RPC, which has no authentication")
	return cmd
}

func initialise(a *app, f initFlags) error {
	path := a.configPath
	text, err := starterSettings(path, f)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	cfg, err := config.Parse(text, path, dir)
	if err != nil {
		return &usageError{explainFlags(f, err)}
	}
	if err := writeNew(path, text); err != nil {
		return err
	}
	again := a.again()
	_, err = fmt.Fprintf(a.stdout, "Wrote %s.\n\nNext:\n\n  %s doctor\n%s  %[2]s serve\n", path, again, fillCommands(again, cfg))
	return err
}

// again is how a command line on the same settings begins: the program as it was called, and the settings file where it is not the one
// that is taken anyway.
func (a *app) again() string {
	taken := defaultConfig
	if named := a.getenv("LEANI_CONFIG"); named != "" {
		taken = named
	}
	if a.configPath == taken {
		return shellWord(a.program)
	}
	return shellWord(a.program) + " --config " + shellWord(a.configPath)
}

// shellWord quotes a word for a shell where it needs that.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,\\", r)
	}
	if s != "" && (runtime.GOOS == "windows" || !strings.Contains(s, "\\")) && strings.TrimLeftFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// fillCommands are commands that fill what the era folder holds, or one that says what is wrong with it. They begin as told.
func fillCommands(begin string, cfg *config.Config) string {
	var out strings.Builder
	if folder := cfg.Sources.History[0].Folder; folder != "" {
		if source, err := openFolder(folder, cfg.Chain.FilePrefix()); err == nil {
			spans := entrySpans(source.Catalog().Entries())
			for _, s := range spans[:min(listedSpans, len(spans))] {
				fmt.Fprintf(&out, "  %s history fill --from-block %d --to-block %d\n", begin, s.From, s.To)
			}
			return out.String()
		}
	}
	return fmt.Sprintf("  %s history sources\n", begin)
}

// initFlagOf names the flag of init that fills in a setting; empty for others.
func initFlagOf(field string) string {
	switch field {
	case "data_dir":
		return "--data-dir"
	case "sources.history[0].endpoint":
		return "--era"
	case "chain.name":
		return "--chain-name"
	case "chain.chain_id":
		return "--chain-id"
	case "chain.genesis":
		return "--genesis"
	case "rpc.http_bind":
		return "--rpc-bind"
	}
	return ""
}

// explainFlags tells problems of settings that were not written in terms of the flags they came from.
func explainFlags(f initFlags, err error) error {
	var invalid *config.Error
	if !errors.As(err, &invalid) {
		return err
	}
	var problems []error
	for _, p := range invalid.Problems {
		switch flag := initFlagOf(p.Field); {
		case p.Field == "rpc.ws_bind": // follows --rpc-bind, which has the problem too
			continue
		case p.Field == "rpc.http_bind" && p.Kind == config.Conflict && !f.remote:
			problems = append(problems, fmt.Errorf("--rpc-bind %s: %s; add --allow-remote for a trusted network, or a proxy that authenticates", f.rpcBind, p.Message))
			continue
		case flag != "":
			p.Field, p.Value = strings.TrimSpace(flag+" "+p.Value), ""
		}
		p.File = ""
		problems = append(problems, errors.New(p.String()))
	}
	if len(problems) == 0 {
		return err
	}
	return errors.Join(problems...)
}

// writeNew writes a file that must not exist.
func writeNew(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten; name another file with --config", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// starterSettings fills in the template.
func starterSettings(path string, f initFlags) ([]byte, error) {
	dataDir, err := besideFile(path, f.dataDir, "data")
	if err != nil {
		return nil, err
	}
	era, err := besideFile(path, f.era, "era")
	if err != nil {
		return nil, err
	}
	genesis, err := besideFile(path, f.genesis, "")
	if err != nil {
		return nil, err
	}
	t, err := template.New("leani.toml").Funcs(template.FuncMap{"toml": tomlString}).Parse(starterTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"DataDir": dataDir, "Era": folderURI(era), "Genesis": genesis,
		"ChainName": f.chainName, "ChainID": f.chainID, "Mainnet": f.chainID == chain.MainnetChainID,
		"RPCBind": f.rpcBind, "WSBind": nextPort(f.rpcBind), "AllowRemote": f.remote,
	})
	return out.Bytes(), err
}

// besideFile turns a path of a flag, which starts at the working directory, into one for the
// settings file. Absolute paths stay as they are. An empty flag gives the fallback.
func besideFile(settings, flag, fallback string) (string, error) {
	if flag == "" {
		return fallback, nil
	}
	if filepath.IsAbs(flag) {
		return filepath.Clean(flag), nil
	}
	here, err := filepath.Abs(flag)
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Dir(settings))
	if err != nil {
		return "", err
	}
	return filepath.Rel(dir, here)
}

// folderURI is the file: URI of a folder.
func folderURI(path string) string {
	escaped := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	if filepath.IsAbs(path) {
		return "file://" + escaped + "/"
	}
	return "file:" + escaped + "/"
}

// nextPort is the address one port up, or the same when the address says nothing definite:
// settings are checked as a whole afterwards.
func nextPort(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || a.Port() == 0 {
		return address
	}
	port := a.Port() + 1
	if port == 0 {
		port = a.Port() - 1
	}
	return netip.AddrPortFrom(a.Addr(), port).String()
}

// tomlString quotes a string for TOML, whose basic strings read what JSON writes.
func tomlString(s string) (string, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(out.String(), "\n"), err
}
