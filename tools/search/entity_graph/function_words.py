"""Small words that are no names: those that may stand inside a name, and those that alone mean nothing."""

_INSIDE_NAMES = (
    "of the de la le les des du da do dos di del della degli der den dem von van zu und y e et and in on at for to a",
    "an al el bin ibn ben af av og och",
)
_OTHERS = (
    "i he she it its his her hers him they their them we our us you your my me this that these those there here who",
    "whom whose which what when where why how was were is are be been being am has have had do does did will would can",
    "could may might shall should must not no nor or but if then than as by from with without into onto upon over",
    "under between after before during since until while although though because however also both each either neither",
    "some any all most more many much few several such other another one only same so too very just now later about",
    "against among through out up down off again once",
)

CONNECTORS = frozenset(word for line in _INSIDE_NAMES for word in line.split())
FUNCTION_WORDS = CONNECTORS | frozenset(word for line in _OTHERS for word in line.split())
