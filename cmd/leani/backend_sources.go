package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/engine"
)

// sources lists the files of the era source. A store that is not there holds nothing; of one that is in
// use it is not known what it holds.
func (s stored) sources(ctx context.Context, o nodeOptions) (sourcesReport, error) {
	r := sourcesReport{Files: []sourceFile{}, Unreadable: []string{}}
	var err error
	if r.Folder, err = eraFolder(o.settings); err != nil {
		return r, err
	}
	source, err := openSource(r.Folder, o.settings.Chain.FilePrefix())
	if err != nil {
		return r, err
	}
	r.Coverage = sourceSpans(source)
	for _, err := range source.Catalog().Unread() {
		r.Unreadable = append(r.Unreadable, err.Error())
	}

	missing := chain.Range.Len // of a store that is not there
	n, err := s.open(ctx, o)
	switch {
	case err == nil:
		missing = n.missing
	case errors.Is(err, engine.ErrLocked):
		missing, r.Note = nil, "What is stored is not known: another process uses the store."
	case !errors.Is(err, engine.ErrNoStore):
		return r, err
	}
	for _, e := range source.Catalog().Entries() {
		f := sourceFile{Name: e.Name, blockSpan: blockSpan{e.Range.From, e.Range.To - 1}, Bytes: uint64(e.Size)}
		if missing != nil {
			held := e.Range.Len() - missing(e.Range)
			f.Stored = &held
		}
		r.Files = append(r.Files, f)
	}
	if n != nil {
		err = n.close()
		return r, err
	}
	return r, nil
}

// eraFolder is the path of the era source; the settings have no second one.
func eraFolder(c *config.Config) (string, error) {
	for _, s := range c.Sources.History {
		if s.Kind == config.SourceEra {
			return filepath.Clean(s.Folder), nil
		}
	}
	return "", errors.New("sources.history has no era_e source")
}
