"""Contents of a collection's stores on disk."""

from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.index_set import ALL, IndexSet
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url


def held(settings: Settings) -> list[tuple[int, set[str]]]:
    """Return the passages of the catalogue, then those of each index, without repairs."""
    catalogue = Catalogue(catalogue_url(settings.home, None), owner=settings.owner, collection=settings.collection)
    indexes = IndexSet(settings, catalogue, HashingEmbedder())
    stores = [(catalogue.count_passages(), catalogue.passage_ids())]
    for name in ALL:
        index = indexes.ready(name, lambda _name, _passages: None)
        stores.append((index.count(), index.ids()))
    assert indexes.notes == []
    indexes.close()
    catalogue.close()
    return stores
